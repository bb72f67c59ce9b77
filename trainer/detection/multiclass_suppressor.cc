#include "trainer/detection/multiclass_suppressor.h"

#include <algorithm>
#include <tuple>

namespace muster::detection {

MulticlassSuppressor::MulticlassSuppressor(const MulticlassSettings& settings, size_t anchors,
                                           size_t columns)
    : settings_(settings), columns_(columns), suppressor_(anchors) {
  class_scores_.reserve(anchors);
  const size_t per_class =
      std::min(anchors, static_cast<size_t>(settings.max_detections_per_class));
  detections_.reserve(per_class * columns);
}

std::span<const Detection> MulticlassSuppressor::select(std::span<const float> boxes,
                                                        std::span<const float> scores) {
  const size_t count = box_count(boxes);
  const SuppressionSettings within_class{
      .score_threshold = settings_.score_threshold,
      .iou_threshold = settings_.iou_threshold,
      .max_boxes = static_cast<size_t>(settings_.max_detections_per_class)};
  class_scores_.resize(count);
  detections_.clear();
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
  }
  const size_t most =
      std::min(detections_.size(), static_cast<size_t>(settings_.max_total_detections));
  std::ranges::partial_sort(
      detections_, detections_.begin() + static_cast<std::ptrdiff_t>(most), {},
      [](const Detection& found) { return std::tuple(-found.score, found.label, found.anchor); });
  return std::span(detections_).first(most);
}

}  // namespace muster::detection
