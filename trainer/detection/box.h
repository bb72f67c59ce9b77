#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "common/inline.h"

namespace muster::detection {

// A box by its borders, in the order and with the names of the TF Object Detection API. Unless
// stated otherwise, the unit is the image's height and width (0 to 1). A proper box has ymin < ymax
// and xmin < xmax, and may reach beyond the image. Lists of boxes are floats [n, 4] in this order.
struct Box {
  float ymin = 0;
  float xmin = 0;
  float ymax = 0;
  float xmax = 0;

  friend bool operator==(const Box&, const Box&) = default;
};

inline size_t box_count(std::span<const float> boxes) {
  return boxes.size() / 4;
}

inline Box box_at(std::span<const float> boxes, size_t index) {
  const float* box = boxes.data() + 4 * index;
  return {box[0], box[1], box[2], box[3]};
}

inline void put_box(std::span<float> boxes, size_t index, const Box& box) {
  float* to = boxes.data() + 4 * index;
  to[0] = box.ymin;
  to[1] = box.xmin;
  to[2] = box.ymax;
  to[3] = box.xmax;
}

// Returns height times width. It is 0 or less for a box with one pair of borders exchanged.
MUSTER_INLINE float area(const Box& box) {
  return (box.ymax - box.ymin) * (box.xmax - box.xmin);
}

// Returns the area that both boxes cover.
MUSTER_INLINE float shared_area(const Box& a, const Box& b) {
  const float height = std::min(a.ymax, b.ymax) - std::max(a.ymin, b.ymin);
  const float width = std::min(a.xmax, b.xmax) - std::max(a.xmin, b.xmin);
  return std::max(height, 0.0f) * std::max(width, 0.0f);
}

// Returns the box with exchanged borders corrected.
MUSTER_INLINE Box upright(const Box& box) {
  return {std::min(box.ymin, box.ymax), std::min(box.xmin, box.xmax), std::max(box.ymin, box.ymax),
          std::max(box.xmin, box.xmax)};
}

// Returns the area that both boxes cover, divided by the area that at least one of them covers: 0
// to 1 (intersection over union, IoU). It is 0 if one of them has no area, exchanged borders, or a
// border that is NaN or infinite.
MUSTER_INLINE float iou(const Box& a, const Box& b) {
  const float both = shared_area(a, b);
  const float ratio = both / (area(a) + area(b) - both);
  return both > 0 && ratio > 0 ? ratio : 0;
}

// Returns the part of the box that lies in the window. A box outside of the window becomes a box
// without area on the window's border.
inline Box clip(const Box& box, const Box& window) {
  return {std::clamp(box.ymin, window.ymin, window.ymax),
          std::clamp(box.xmin, window.xmin, window.xmax),
          std::clamp(box.ymax, window.ymin, window.ymax),
          std::clamp(box.xmax, window.xmin, window.xmax)};
}

}  // namespace muster::detection
