#include "trainer/detection/hard_example_miner.h"

#include <algorithm>
#include <cmath>

#include "trainer/detection/argmax_matcher.h"

namespace muster::detection {

HardExampleMiner::HardExampleMiner(const MiningSettings& settings, size_t anchors)
    : settings_(settings), suppressor_(anchors) {
  selected_.reserve(anchors);
}

std::span<const int32_t> HardExampleMiner::select(std::span<const float> boxes,
                                                  std::span<const float> losses,
                                                  std::span<const int32_t> matches) {
  suppressor_.set_boxes(boxes);
  const auto hard =
      suppressor_.select(losses, {.score_threshold = -INFINITY,
                                  .iou_threshold = settings_.iou_threshold,
                                  .max_boxes = static_cast<size_t>(settings_.num_hard_examples)});
  if (settings_.max_negatives_per_positive == 0) return hard;
  auto match = [&](int32_t anchor) { return matches[static_cast<size_t>(anchor)]; };
  const auto positives =
      std::ranges::count_if(hard, [&](int32_t anchor) { return match(anchor) >= 0; });
  const auto by_positives =
      static_cast<int64_t>(settings_.max_negatives_per_positive * static_cast<float>(positives));
  const auto most = std::max<int64_t>(settings_.min_negatives_per_image, by_positives);
  int64_t negatives = 0;
  selected_.clear();
  for (const int32_t anchor : hard) {
    if (match(anchor) == kUnmatched) ++negatives;
    if (match(anchor) >= 0 || negatives <= most) selected_.push_back(anchor);
  }
  return selected_;
}

}  // namespace muster::detection
