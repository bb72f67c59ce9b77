#include "trainer/data/images/image_reader.h"

#include <algorithm>
#include <cstring>

namespace muster::data {

namespace {

// Returns the length of a whole image such that its part has `needed` pixels.
size_t whole_length(size_t needed, size_t part, uint64_t whole) {
  return (needed * whole + part - 1) / part;
}

void copy(const images::Image& image, std::vector<std::byte>& pixels) {
  pixels.resize(image.pixels.size());
  std::memcpy(pixels.data(), image.pixels.data(), pixels.size());
}

}  // namespace

void ImageReader::open(std::span<const std::byte> bytes, const images::Name& name) {
  size_ = decoder_.header(bytes, name).seen();
  bytes_ = bytes;
  name_ = name;
  window_ = {0, 0, size_.height, size_.width};
}

void ImageReader::crop(const images::Window& part) {
  window_ = {window_.top + part.top, window_.left + part.left, part.height, part.width};
}

std::string ImageReader::read(size_t height, size_t width, std::vector<std::byte>& pixels) {
  images::DecodeOptions options;
  options.needed_height = whole_length(height, window_.height, size_.height);
  options.needed_width = whole_length(width, window_.width, size_.width);
  options.window = window_;
  resizer_.resize(decoder_.decode(bytes_, name_, options, decoded_), height, width, resized_);
  copy(resized_, pixels);
  return decoder_.oddity().empty() ? "" : name_.text() + ": " + decoder_.oddity();
}

void ImageReader::enlarge(const images::Window& part, size_t height, size_t width,
                          std::vector<std::byte>& pixels) {
  const images::ImageView whole{reinterpret_cast<const uint8_t*>(pixels.data()), height, width,
                                width * 3};
  const images::ImageView view{whole.row(part.top) + part.left * 3, part.height, part.width,
                               whole.stride};
  resizer_.resize(view, height, width, resized_);
  copy(resized_, pixels);
}

}  // namespace muster::data
