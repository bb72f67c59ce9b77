#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/images/crop.h"
#include "trainer/images/image.h"
#include "trainer/images/jpeg_codec.h"
#include "trainer/images/name.h"

namespace muster::images {

struct DecodeOptions {
  // An image with more pixels is refused before memory for them is allocated.
  uint64_t most_pixels = uint64_t{1} << 26;
  // The caller will shrink the image to this size. A JPEG that is at least twice as high and wide
  // is then decoded at 1/2, 1/4 or 1/8 of its size, and never below the needed size. 0: the full
  // size.
  size_t needed_height = 0;
  size_t needed_width = 0;
  // The wanted part, in pixels of the whole image as it is seen; the part must lie within the
  // image. Without height: the whole image. The decoder makes only these pixels of a JPEG, with the
  // same values as in the whole image.
  Window window = {};
};

struct ImageSize {
  uint64_t height = 0;
  uint64_t width = 0;

  bool operator==(const ImageSize&) const = default;
};

struct ImageHeader {
  ImageSize stored;
  int orientation = 1;  // EXIF's, from 1 to 8

  ImageSize seen() const;  // size after EXIF's turn
};

// Decodes JPEG and PNG to 8-bit RGB, one image after the other, and keeps its memory from image to
// image. Only one thread may use a decoder at a time.
//
// JPEG: grey, YCbCr, RGB, CMYK and YCCK of 8 bits; sequential and progressive. PNG: all kinds; of
// 16 bits the upper 8 are used, and transparency is ignored (like tf.io.decode_png). Both are
// turned by the orientation in their EXIF data; in a PNG these data must come before the pixels.
//
// Throws Invalid with `name`, what was expected and what was found, for anything that is not one
// whole image: truncated, damaged, of another format, or too large. A JPEG with an irregularity
// that no pixel depends on (spare bytes between its parts, odd headers) is decoded, because real
// data sets have such files.
class Decoder {
 public:
  // Returns the pixels of the window, in the memory of `image`; without a window, `image` is the
  // whole image. If the image is decoded at a smaller size (needed_height), the window's borders
  // are moved outward to whole pixels.
  ImageView decode(std::span<const std::byte> bytes, const Name& name, const DecodeOptions& options,
                   Image& image);
  // Reads only the header. Throws Invalid like decode().
  ImageHeader header(std::span<const std::byte> bytes, const Name& name);
  // Returns what is irregular about the last image that was decoded; empty: nothing.
  const std::string& oddity() const { return oddity_; }

 private:
  void decode_jpeg(std::span<const std::byte> bytes, const Name& name, const DecodeOptions& options,
                   Image& image);
  void decode_png_turned(std::span<const std::byte> bytes, const Name& name, uint64_t most_pixels,
                         Image& image);

  JpegReader jpeg_;
  Image scratch_;                     // the image before it is turned
  std::vector<uint8_t> cmyk_;         // 4 bytes for each pixel
  std::vector<unsigned char*> rows_;  // rows of a PNG
  std::string oddity_;
};

// Read only the header, with a decoder of their own. read_size() returns the full size as it is
// seen. Both throw Invalid like Decoder.
ImageHeader read_header(std::span<const std::byte> bytes, const Name& name);
ImageSize read_size(std::span<const std::byte> bytes, const Name& name);

}  // namespace muster::images
