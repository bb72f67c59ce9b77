#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "trainer/images/crop.h"
#include "trainer/images/decode.h"
#include "trainer/images/image.h"
#include "trainer/images/name.h"
#include "trainer/images/resize.h"

namespace muster::data {

// Turns encoded images into the pixels of samples. An image is decoded last, so a crop costs
// nothing, and a JPEG that is needed at a lower resolution is decoded at a fraction of its size.
// Keeps its memory from image to image; only one thread may use the reader at a time.
class ImageReader {
 public:
  // Begins with a whole image, and reads its header; `bytes` must live until read(). Throws
  // Invalid, beginning with `name`, like images::Decoder. A name of text must live until read().
  void open(std::span<const std::byte> bytes, const images::Name& name);

  // Return the size of the current part, in pixels of the file.
  size_t height() const { return window_.height; }
  size_t width() const { return window_.width; }
  // Reduces the current part to a part of it.
  void crop(const images::Window& part);

  // Decodes the current part and resizes it to height x width x 3 bytes. Throws Invalid like
  // images::Decoder. Returns what is irregular about the file, beginning with its name; empty:
  // nothing.
  std::string read(size_t height, size_t width, std::vector<std::byte>& pixels);

  // Resizes a part of an image of height x width x 3 bytes to the whole size; `pixels` may be its
  // own memory.
  void enlarge(const images::Window& part, size_t height, size_t width,
               std::vector<std::byte>& pixels);

 private:
  std::span<const std::byte> bytes_;
  images::Name name_{""};
  images::ImageSize size_;
  images::Window window_;
  images::Decoder decoder_;
  images::Resizer resizer_;
  images::Image decoded_, resized_;
};

}  // namespace muster::data
