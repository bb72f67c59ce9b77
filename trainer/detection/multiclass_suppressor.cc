#include "trainer/detection/multiclass_suppressor.h"

#include <algorithm>
#include <tuple>

namespace muster::detection {

namespace {

// The order of results.
bool better(const Detection& a, const Detection& b) {
  return std::tuple(-a.score, a.label, a.anchor) < std::tuple(-b.score, b.label, b.anchor);
}

}  // namespace

MulticlassSuppressor::MulticlassSuppressor(const MulticlassSettings& settings, size_t anchors,
                                           size_t columns)
    : settings_(settings), columns_(columns), suppressor_(anchors) {
  class_scores_.reserve(anchors);
  detections_.reserve(static_cast<size_t>(settings.max_total_detections) +
                      std::min(anchors, static_cast<size_t>(settings.max_detections_per_class)));
}

std::span<const Detection> MulticlassSuppressor::select(std::span<const float> boxes,
                                                        std::span<const float> scores) {
  const size_t count = box_count(boxes);
  const auto most = static_cast<size_t>(settings_.max_total_detections);
  SuppressionSettings within_class{
      .score_threshold = settings_.score_threshold,
      .iou_threshold = settings_.iou_threshold,
      .max_boxes = static_cast<size_t>(settings_.max_detections_per_class)};
  class_scores_.resize(count);
  detections_.clear();
  if (most == 0) return {};
  suppressor_.set_boxes(boxes);
  for (auto label = static_cast<size_t>(settings_.first_label); label < columns_; ++label) {
    for (size_t i = 0; i < count; ++i) class_scores_[i] = scores[i * columns_ + label];
    for (const int32_t anchor : suppressor_.select(class_scores_, within_class)) {
      const auto i = static_cast<size_t>(anchor);
      const Box box = clip(box_at(boxes, i), settings_.window);
      if (box.ymin < box.ymax && box.xmin < box.xmax && area(box) > 0) {
        detections_.push_back({box, class_scores_[i], static_cast<int32_t>(label), anchor});
      }
    }
    if (detections_.size() < most) continue;
    // The other classes can skip scores that cannot be among the best any more.
    const auto last = detections_.begin() + static_cast<std::ptrdiff_t>(most) - 1;
    std::ranges::nth_element(detections_, last, better);
    within_class.score_threshold = std::max(within_class.score_threshold, last->score);
    detections_.resize(most);
  }
  std::ranges::sort(detections_, better);
  return detections_;
}

}  // namespace muster::detection
