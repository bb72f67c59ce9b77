#include "trainer/images/flip.h"

#include <algorithm>

namespace muster::images {

void flip(Image& image) {
  for (size_t y = 0; y < image.height; ++y) {
    uint8_t* left = image.row(y);
    uint8_t* right = left + image.stride() - 3;
    for (; left < right; left += 3, right -= 3) std::swap_ranges(left, left + 3, right);
  }
}

void flip(std::vector<Box>& boxes) {
  for (Box& box : boxes) {
    const float xmin = box.xmin;
    box.xmin = 1 - box.xmax;
    box.xmax = 1 - xmin;
  }
}

}  // namespace muster::images
