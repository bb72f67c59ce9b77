#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/images/crop.h"
#include "trainer/images/decode.h"
#include "trainer/images/image.h"
#include "trainer/images/resize.h"

namespace muster::data {

// An encoded image on its way to the pixels of a sample. It is decoded last: a crop before that
// costs nothing, and a JPEG of which less resolution is needed is decoded at a fraction of its
// size. Keeps its memory from image to image; only one thread may use it at a time.
class ImageReader {
 public:
  // Begins with a whole image, of which it reads the header; `bytes` must live until read(). Throws
  // Invalid, which begins with `name`, as images::read_size does.
  void open(std::span<const std::byte> bytes, std::string_view name);

  // Returns the size of the part that is left, in pixels of the file.
  size_t height() const { return window_.height; }
  size_t width() const { return window_.width; }
  // Leaves a part of what is left.
  void crop(const images::Window& part);

  // Decodes what is left and resizes it to height x width x 3 bytes. Throws Invalid as
  // images::Decoder does. Returns what is irregular about the file, beginning with its name; empty:
  // nothing.
  std::string read(size_t height, size_t width, std::vector<std::byte>& pixels);

  // Resizes a part of an image of height x width x 3 bytes to the whole size; `pixels` may be its
  // own memory.
  void enlarge(const images::Window& part, size_t height, size_t width,
               std::vector<std::byte>& pixels);

 private:
  std::span<const std::byte> bytes_;
  std::string name_;
  images::ImageSize size_;
  images::Window window_;
  images::Decoder decoder_;
  images::Resizer resizer_;
  images::Image decoded_, resized_;
};

}  // namespace muster::data
