#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/detection/box.h"

namespace muster::detection {

struct SuppressionSettings {
  float score_threshold = 0;  // only boxes with a higher score are selected
  float iou_threshold = 0.5f;
  size_t max_boxes = 100;  // most boxes that are selected
};

// Non-maximum suppression like TensorFlow's NonMaxSuppressionV3: it goes through the boxes by
// falling score (of equal scores, the lower index first), and selects a box if its IoU with each
// selected box is at most the threshold. Exchanged borders are corrected before the IoU is
// computed. A box without area, or with a border that is NaN or infinite, suppresses no other box
// and is not suppressed (TensorFlow gives a box with NaN the score 0). A box whose score is NaN is
// never selected. One thread at a time may use a suppressor.
class Suppressor {
 public:
  // Allocates later only for more boxes than `boxes`, and more than ever before.
  explicit Suppressor(size_t boxes);

  // Takes a copy of the boxes, [n, 4], that select() chooses from.
  void set_boxes(std::span<const float> boxes);
  // Returns the indices of the selected boxes by falling score. `scores` has one for each box. The
  // indices stay valid until the next call.
  std::span<const int32_t> select(std::span<const float> scores,
                                  const SuppressionSettings& settings);

 private:
  // A box with area, and its place among the others.
  struct Solid {
    Box box;
    float area = 0;
    size_t place = 0;  // in by_xmin_
  };
  static constexpr size_t kNowhere = ~size_t{0};  // the place of a box without area

  bool suppressed(const Solid& candidate, float iou_threshold) const;

  std::vector<Solid> solids_;     // for each box
  std::vector<int32_t> by_xmin_;  // the boxes with area by their xmin
  std::vector<float> xmin_;       // their xmin, in this order
  std::vector<uint8_t> chosen_;   // whether they are selected, in this order
  std::vector<uint64_t> queue_;   // a heap of scores and indices
  std::vector<int32_t> selected_;
};

}  // namespace muster::detection
