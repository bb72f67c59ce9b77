#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace muster::images {

// A rectangle of 8-bit RGB pixels in memory that another object owns. A pixel is 3 bytes, pixels of
// a row follow each other, and a row begins `stride` bytes after the row above it.
struct ImageView {
  const uint8_t* pixels = nullptr;
  size_t height = 0;
  size_t width = 0;
  size_t stride = 0;

  const uint8_t* row(size_t y) const { return pixels + y * stride; }
};

// An image of 8-bit RGB pixels: height x width x 3 bytes in C order. Its memory is kept when the
// next image is not larger.
struct Image {
  size_t height = 0;
  size_t width = 0;
  std::vector<uint8_t> pixels;

  size_t stride() const { return width * 3; }
  uint8_t* row(size_t y) { return pixels.data() + y * stride(); }
  const uint8_t* row(size_t y) const { return pixels.data() + y * stride(); }

  void resize(size_t new_height, size_t new_width) {
    height = new_height;
    width = new_width;
    pixels.resize(height * width * 3);
  }

  ImageView view() const { return {pixels.data(), height, width, stride()}; }
  // Returns the pixels of rows [top, top + view_height) and columns [left, left + view_width),
  // which must lie within the image.
  ImageView view(size_t top, size_t left, size_t view_height, size_t view_width) const {
    return {row(top) + left * 3, view_height, view_width, stride()};
  }
};

}  // namespace muster::images
