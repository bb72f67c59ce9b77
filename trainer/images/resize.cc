#include "trainer/images/resize.h"

#include <algorithm>
#include <cmath>

namespace muster::images {

void Resizer::find_places(size_t from, size_t to, std::vector<Place>& places) {
  places.resize(to);
  const float scale = static_cast<float>(from) / static_cast<float>(to);
  for (size_t i = 0; i < to; ++i) {
    const float exact = (static_cast<float>(i) + 0.5f) * scale - 0.5f;
    const float floor = std::floor(exact);
    const auto last = static_cast<float>(from - 1);
    places[i].lower = static_cast<size_t>(std::clamp(floor, 0.0f, last));
    places[i].upper = static_cast<size_t>(std::clamp(std::ceil(exact), 0.0f, last));
    places[i].weight = exact - floor;
  }
}

// Returns row `y` of `from`, resized along its length. Two consecutive rows are kept, because a row
// of the result lies between two rows, and the next one often between the same two.
const float* Resizer::widened_row(const ImageView& from, size_t y) {
  for (const WidenedRow& kept : widened_) {
    if (kept.y == y) return kept.values.data();
  }
  // Rows come in ascending order, so the one further above is not needed again.
  WidenedRow& row =
      widened_[0].y == SIZE_MAX || (widened_[1].y != SIZE_MAX && widened_[0].y < widened_[1].y)
          ? widened_[0]
          : widened_[1];
  row.y = y;
  row.values.resize(columns_.size() * 3);
  const uint8_t* pixels = from.row(y);
  float* out = row.values.data();
  for (const Place& place : columns_) {
    const uint8_t* left = pixels + place.lower * 3;
    const uint8_t* right = pixels + place.upper * 3;
    for (size_t c = 0; c < 3; ++c) {
      const auto l = static_cast<float>(left[c]), r = static_cast<float>(right[c]);
      *out++ = l + (r - l) * place.weight;
    }
  }
  return row.values.data();
}

void Resizer::resize(const ImageView& from, size_t height, size_t width, Image& to) {
  // Std::lround, which the linter prefers, would be a call for each pixel.
  constexpr float kHalf = 0.5f;
  to.resize(height, width);
  find_places(from.height, height, rows_);
  find_places(from.width, width, columns_);
  for (WidenedRow& row : widened_) row.y = SIZE_MAX;
  const size_t values = width * 3;
  uint8_t* out = to.pixels.data();
  for (const Place& place : rows_) {
    const float* upper = widened_row(from, place.lower);
    const float* lower = widened_row(from, place.upper);
    const float weight = place.weight;
    for (size_t i = 0; i < values; ++i)
      out[i] = static_cast<uint8_t>(upper[i] + (lower[i] - upper[i]) * weight + kHalf);
    out += values;
  }
}

}  // namespace muster::images
