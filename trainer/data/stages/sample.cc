#include "trainer/data/stages/sample.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace muster::data {

namespace {

// The brightness of RGB by the weights of ITU-R BT.601, rounded.
std::byte brightness(const std::byte* pixel) {
  const auto value = [&](size_t c) { return std::to_integer<uint32_t>(pixel[c]); };
  return static_cast<std::byte>((299 * value(0) + 587 * value(1) + 114 * value(2) + 500) / 1000);
}

}  // namespace

void Sample::begin(std::span<const std::byte> image, const images::Name& name, size_t rows,
                   size_t columns, bool grey) {
  if (!reader_) reader_ = std::make_unique<ImageReader>();
  reader_->open(image, name);
  shape = {static_cast<int64_t>(rows), static_cast<int64_t>(columns), 3};
  element_bytes = 1;
  original = {reader_->height(), reader_->width()};
  is_encoded_ = true;
  is_mirrored_ = false;
  is_grey_ = grey;
  oddity.clear();
}

void Sample::make_pixels() {
  if (!is_encoded_) return;
  std::string irregular = reader_->read(height(), width(), features);
  if (oddity.empty()) oddity = std::move(irregular);
  is_encoded_ = false;
  if (is_mirrored_) mirror();
}

void Sample::mirror() {
  if (is_encoded_) {
    is_mirrored_ = !is_mirrored_;
    return;
  }
  const size_t pixel = pixel_bytes(), row = width() * pixel;
  for (size_t y = 0; y < height(); ++y) {
    std::byte* left = features.data() + y * row;
    std::byte* right = left + row - pixel;
    for (; left < right; left += pixel, right -= pixel) std::swap_ranges(left, left + pixel, right);
  }
}

void Sample::crop(const images::Window& part) {
  if (!is_encoded_) return reader_->enlarge(part, height(), width(), features);
  images::Window seen = part;
  if (is_mirrored_) seen.left = reader_->width() - part.left - part.width;
  reader_->crop(seen);
}

images::ImageSize Sample::size_to_crop() const {
  if (is_encoded_) return {reader_->height(), reader_->width()};
  return {height(), width()};
}

void Sample::write(std::byte* out) const {
  if (is_grey_) {
    for (size_t i = 0; i < features.size(); i += 3) *out++ = brightness(&features[i]);
  } else {
    std::memcpy(out, features.data(), features.size());
  }
}

}  // namespace muster::data
