#include "trainer/detection/target_assigner.h"

#include <algorithm>

#include "trainer/detection/box.h"

namespace muster::detection {

TargetAssigner::TargetAssigner(std::span<const float> anchors, const AssignmentSettings& settings)
    : settings_(settings),
      anchors_(anchors.begin(), anchors.end()),
      similarities_(box_count(anchors)),
      matcher_(settings.matcher, box_count(anchors)) {
  for (size_t i = 0; i < box_count(anchors); ++i) {
    const Box anchor = box_at(anchors, i);
    ymin_.push_back(anchor.ymin);
    xmin_.push_back(anchor.xmin);
    ymax_.push_back(anchor.ymax);
    xmax_.push_back(anchor.xmax);
    areas_.push_back(area(anchor));
  }
}

// Computes iou() of the object and all anchors. GCC vectorizes these conditions, and not other
// forms of them. 0 / 0 is NaN, which is not more than 0.
void TargetAssigner::measure(std::span<const float> object) {
  const Box box = box_at(object, 0);
  const float box_area = area(box);
  const float* ymin = ymin_.data();
  const float* xmin = xmin_.data();
  const float* ymax = ymax_.data();
  const float* xmax = xmax_.data();
  const float* areas = areas_.data();
  float* out = similarities_.data();
  for (size_t i = 0; i < similarities_.size(); ++i) {
    const float bottom = ymax[i] < box.ymax ? ymax[i] : box.ymax;
    const float top = ymin[i] > box.ymin ? ymin[i] : box.ymin;
    const float right = xmax[i] < box.xmax ? xmax[i] : box.xmax;
    const float left = xmin[i] > box.xmin ? xmin[i] : box.xmin;
    const float height = bottom - top > 0 ? bottom - top : 0;
    const float width = right - left > 0 ? right - left : 0;
    const float both = height * width;
    const float ratio = both / (areas[i] + box_area - both);
    out[i] = ratio > 0 ? ratio : 0;
  }
}

void TargetAssigner::assign(const GroundTruth& objects, const AnchorTargets& targets) {
  auto weight = [&](size_t object) {
    return objects.weights.empty() ? 1.0f : objects.weights[object];
  };
  matcher_.start();
  for (size_t object = 0; object < box_count(objects.boxes); ++object) {
    measure(objects.boxes.subspan(4 * object, 4));
    matcher_.add_row(similarities_, weight(object) > 0);
  }
  matcher_.finish(targets.matches);
  for (size_t anchor = 0; anchor < anchors(); ++anchor) {
    const int32_t match = targets.matches[anchor];
    const auto code = targets.codes.subspan(4 * anchor, 4);
    if (match < 0) {
      targets.labels[anchor] = settings_.unmatched_label;
      targets.class_weights[anchor] = match == kIgnored ? 0 : settings_.negative_class_weight;
      std::ranges::fill(code, 0.0f);
      targets.code_weights[anchor] = 0;
      continue;
    }
    const auto object = static_cast<size_t>(match);
    targets.labels[anchor] = objects.labels[object];
    targets.class_weights[anchor] = weight(object);
    settings_.coder.encode(objects.boxes.subspan(4 * object, 4),
                           std::span(anchors_).subspan(4 * anchor, 4), code);
    targets.code_weights[anchor] = weight(object);
  }
}

}  // namespace muster::detection
