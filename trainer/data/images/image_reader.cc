#include "trainer/data/images/image_reader.h"

#include <algorithm>
#include <cstring>

namespace muster::data {

namespace {

// Returns the length of a whole image of which a part is to have `needed` pixels.
size_t whole_length(size_t needed, size_t part, uint64_t whole) {
  return (needed * whole + part - 1) / part;
}

// Returns where a border of the whole image is in an image of another size.
size_t scaled(size_t border, uint64_t whole, size_t other, bool up) {
  return (border * other + (up ? whole - 1 : 0)) / whole;
}

void copy(const images::Image& image, std::vector<std::byte>& pixels) {
  pixels.resize(image.pixels.size());
  std::memcpy(pixels.data(), image.pixels.data(), pixels.size());
}

}  // namespace

void ImageReader::open(std::span<const std::byte> bytes, std::string_view name) {
  size_ = images::read_size(bytes, name);
  bytes_ = bytes;
  name_ = name;
  window_ = {0, 0, size_.height, size_.width};
}

void ImageReader::crop(const images::Window& part) {
  window_ = {window_.top + part.top, window_.left + part.left, part.height, part.width};
}

void ImageReader::read(size_t height, size_t width, std::vector<std::byte>& pixels) {
  images::DecodeOptions options;
  options.needed_height = whole_length(height, window_.height, size_.height);
  options.needed_width = whole_length(width, window_.width, size_.width);
  decoder_.decode(bytes_, name_, options, decoded_);
  const size_t top = scaled(window_.top, size_.height, decoded_.height, false);
  const size_t left = scaled(window_.left, size_.width, decoded_.width, false);
  const size_t bottom = scaled(window_.top + window_.height, size_.height, decoded_.height, true);
  const size_t right = scaled(window_.left + window_.width, size_.width, decoded_.width, true);
  resizer_.resize(decoded_.view(top, left, bottom - top, right - left), height, width, resized_);
  copy(resized_, pixels);
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
