#include "trainer/images/flip.h"

#include <algorithm>

#include "trainer/data/stages/stage.h"

namespace muster::data {

void apply(const spec::Flip& flip, Sample& sample, Draws& draws) {
  if (draws.uniform() > flip.probability) return;
  images::flip(sample.boxes);
  const size_t pixel = sample.pixel_bytes(), row = sample.width() * pixel;
  for (size_t y = 0; y < sample.height(); ++y) {
    std::byte* left = sample.features.data() + y * row;
    std::byte* right = left + row - pixel;
    for (; left < right; left += pixel, right -= pixel) std::swap_ranges(left, left + pixel, right);
  }
}

}  // namespace muster::data
