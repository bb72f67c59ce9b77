#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "trainer/images/exif.h"

namespace muster::images {

// The facts of a JPEG's header that decide how it is decoded.
struct JpegHeader {
  uint64_t height = 0;  // as stored
  uint64_t width = 0;
  int components = 0;     // 1 grey, 3 colour, 4 CMYK or YCCK
  bool inverted = false;  // 4 components: 255 stands for no ink, as Adobe's programs write it
  int orientation = 1;    // EXIF's, from 1 to 8
  // The smallest number of bytes that can code such an image: one bit for each block. 0 with
  // arithmetic coding, which has no such limit.
  uint64_t least_bytes = 0;

  // Whether the image is seen with height and width exchanged.
  bool sideways() const { return turns_sideways(orientation); }
};

// Reads the markers up to the frame header; bytes between markers are skipped, as in decoders.
// Throws Invalid, beginning with `name`, if the markers are damaged, or describe an image without
// pixels or with other than 8 bits.
JpegHeader read_jpeg_header(std::span<const std::byte> bytes, std::string_view name);

}  // namespace muster::images
