#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/detection/suppressor.h"

namespace muster::detection {

// An object that a detector has found.
struct Detection {
  Box box;
  float score = 0;
  int32_t label = 0;   // the column of the scores
  int32_t anchor = 0;  // the row of the boxes and scores
};

// The settings of the TF Object Detection API's batch_non_max_suppression, with the numbers of its
// ssd_mobilenet_v1.
struct MulticlassSettings {
  float score_threshold = 1e-8f;  // only boxes with a higher score are found
  float iou_threshold = 0.6f;
  int max_detections_per_class = 100;
  int max_total_detections = 100;
  Box window = {0, 0, 1, 1};  // boxes are clipped to it
  int32_t first_label = 1;    // columns before it, for example the background's, are left out

  bool operator==(const MulticlassSettings&) const = default;
};

// Selects the objects of an image: suppresses boxes within each class (see suppressor.h), clips the
// remaining boxes to the window, drops boxes without area, and returns the boxes with the highest
// scores. This is multiclass_non_max_suppression of the TF Object Detection API, with one box of an
// anchor for all classes. The clipping also drops boxes with NaN borders or with exchanged borders
// (TensorFlow drops them if only one pair is exchanged). One thread at a time may use an object.
class MulticlassSuppressor {
 public:
  // `anchors` and `columns` are the largest sizes for select(), which then allocates nothing.
  MulticlassSuppressor(const MulticlassSettings& settings, size_t anchors, size_t columns);

  // boxes: [n, 4], scores: [n, columns]. Returns the detections by falling score; where scores are
  // equal, by label and then by anchor. They stay valid until the next call.
  std::span<const Detection> select(std::span<const float> boxes, std::span<const float> scores);

 private:
  const MulticlassSettings settings_;
  const size_t columns_;
  Suppressor suppressor_;
  std::vector<float> class_scores_;
  std::vector<Detection> detections_;
};

}  // namespace muster::detection
