#pragma once

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "trainer/detection/box.h"

namespace muster::detection::testing {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Random numbers for cases, the same in each run.
class Random {
 public:
  explicit Random(uint32_t seed) : bits_(seed) {}

  float uniform(float least, float most) {
    return std::uniform_real_distribution<float>(least, most)(bits_);
  }
  int below(int count) { return std::uniform_int_distribution<int>(0, count - 1)(bits_); }

  // Returns a box that may reach beyond the image.
  Box box() {
    const float y = uniform(-0.2f, 1.0f), x = uniform(-0.2f, 1.0f);
    return {y, x, y + uniform(0.01f, 0.6f), x + uniform(0.01f, 0.6f)};
  }
  // Returns a box of which nothing can be expected.
  Box odd_box() {
    Box box = this->box();
    switch (below(7)) {
      case 0:
        box.ymax = box.ymin;  // no area
        break;
      case 1:
        std::swap(box.ymin, box.ymax);
        break;
      case 2:
        std::swap(box.ymin, box.ymax);
        std::swap(box.xmin, box.xmax);
        break;
      case 3:
        (below(2) == 0 ? box.xmin : box.ymax) = kNan;
        break;
      case 4:
        (below(2) == 0 ? box.ymin : box.xmax) = below(2) == 0 ? kInfinity : -kInfinity;
        break;
      case 5:
        box = {box.ymin + 5, box.xmin, box.ymax + 5, box.xmax};  // outside of the image
        break;
      default:
        box = {1e-30f, 1e-30f, 2e-30f, 3e30f};
        break;
    }
    return box;
  }
  // Returns boxes [n, 4], a share of which is odd.
  std::vector<float> boxes(int count, float odd = 0) {
    std::vector<float> boxes(4 * static_cast<size_t>(count));
    for (size_t i = 0; i < box_count(boxes); ++i)
      put_box(boxes, i, uniform(0, 1) < odd ? odd_box() : box());
    return boxes;
  }

 private:
  std::mt19937 bits_;
};

}  // namespace muster::detection::testing
