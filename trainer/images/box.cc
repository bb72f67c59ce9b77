#include "trainer/images/box.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "trainer/images/exif.h"

namespace muster::images {

BoxProblems& BoxProblems::operator+=(const BoxProblems& other) {
  not_finite += other.not_finite;
  no_area += other.no_area;
  outside += other.outside;
  far_outside += other.far_outside;
  in_first_pixel += other.in_first_pixel;
  return *this;
}

BoxProblems keep_usable(std::vector<Box>& boxes) {
  constexpr float kRounding = 1e-6f, kFar = 2.0f;
  BoxProblems problems;
  std::erase_if(boxes, [&](Box& box) {
    if (!std::isfinite(box.ymin) || !std::isfinite(box.xmin) || !std::isfinite(box.ymax) ||
        !std::isfinite(box.xmax)) {
      ++problems.not_finite;
      return true;
    }
    if (std::max(std::abs(box.ymax), std::abs(box.xmax)) > kFar) {
      ++problems.far_outside;
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

void turn(Box& box, int orientation) {
  if (reverses_rows(orientation)) box.ymin = 1 - std::exchange(box.ymax, 1 - box.ymin);
  if (reverses_columns(orientation)) box.xmin = 1 - std::exchange(box.xmax, 1 - box.xmin);
  if (!turns_sideways(orientation)) return;
  std::swap(box.ymin, box.xmin);
  std::swap(box.ymax, box.xmax);
}

}  // namespace muster::images
