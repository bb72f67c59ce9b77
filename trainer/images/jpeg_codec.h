#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/images/crop.h"
#include "trainer/images/exif.h"
#include "trainer/images/name.h"

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

// Decodes parts of JPEGs, one after the other. Outside of the part no pixels are made, but the
// whole file is read, so that damage anywhere is found. Only one thread may use it at a time.
class JpegReader {
 public:
  JpegReader();
  ~JpegReader();
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  // Begins with a file, which must live until read(), and reads its header. The header is valid
  // until the next call. Throws Invalid, beginning with `name`, for a damaged header, and for an
  // image without pixels, of other than 8 bits, or of 2 components.
  const JpegHeader& open(std::span<const std::byte> bytes, const Name& name);
  // Decodes `part`, which must not be empty, of the opened image at 1/divisor (1, 2, 4 or 8) of its
  // stored size, once for each open(). The pixels are the same to the bit as when the whole image
  // is decoded. Writes rows of RGB, or of CMYK if the header has 4 components, without gaps. Throws
  // Invalid, beginning with `name`, for a damaged file. Returns what is irregular about a file that
  // is decoded completely nevertheless; empty: nothing.
  std::string read(int divisor, const Window& part, const Name& name, uint8_t* pixels);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
  JpegHeader header_;
  size_t bytes_ = 0;          // number of the file's bytes
  std::vector<uint8_t> row_;  // one row of the decoded image
};

}  // namespace muster::images
