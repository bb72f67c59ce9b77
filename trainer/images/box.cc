#include "trainer/images/box.h"

#include <algorithm>
#include <cmath>

namespace muster::images {

BoxProblems& BoxProblems::operator+=(const BoxProblems& other) {
  not_finite += other.not_finite;
  no_area += other.no_area;
  outside += other.outside;
  return *this;
}

BoxProblems keep_usable(std::vector<Box>& boxes) {
  constexpr float kRounding = 1e-6f;
  BoxProblems problems;
  std::erase_if(boxes, [&](Box& box) {
    if (!std::isfinite(box.ymin) || !std::isfinite(box.xmin) || !std::isfinite(box.ymax) ||
        !std::isfinite(box.xmax)) {
      ++problems.not_finite;
      return true;
    }
    const bool outside =
        std::min(box.ymin, box.xmin) < -kRounding || std::max(box.ymax, box.xmax) > 1 + kRounding;
    for (float* corner : {&box.ymin, &box.xmin, &box.ymax, &box.xmax}) {
      *corner = std::clamp(*corner, 0.0f, 1.0f);
    }
    if (box.height() <= 0 || box.width() <= 0) {
      ++problems.no_area;
      return true;
    }
    if (outside) ++problems.outside;
    return false;
  });
  return problems;
}

}  // namespace muster::images
