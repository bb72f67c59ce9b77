#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/detection/suppressor.h"

namespace muster::detection {

// The settings of the TF Object Detection API's hard_example_miner, with its names and the numbers
// of its ssd_mobilenet_v1.
struct MiningSettings {
  int num_hard_examples = 3000;  // most examples after suppression
  float iou_threshold = 0.99f;
  float max_negatives_per_positive = 3;  // 0: any number
  int min_negatives_per_image = 0;       // at least this many negatives are allowed

  bool operator==(const MiningSettings&) const = default;
};

// Selects the anchors of an image whose losses count, like HardExampleMiner of the TF Object
// Detection API: it goes through the anchors by falling loss, and suppresses an anchor whose
// predicted box is almost that of a selected anchor (see suppressor.h). Of the remaining anchors it
// keeps all matched ones, and as many unmatched ones as the settings allow:
// max_negatives_per_positive for each remaining matched anchor, rounded down, or
// min_negatives_per_image if that is more. An anchor whose loss is NaN is not selected. One thread
// at a time may use a miner.
class HardExampleMiner {
 public:
  // `anchors` is the largest number of anchors for select(), which then allocates nothing.
  HardExampleMiner(const MiningSettings& settings, size_t anchors);

  // boxes: [a, 4], the decoded predictions; losses: [a], the losses that decide which examples are
  // hard (for ssd_mobilenet_v1 those of classification); matches: [a], from ArgmaxMatcher. Returns
  // the indices of the anchors, by falling loss. They stay valid until the next call.
  std::span<const int32_t> select(std::span<const float> boxes, std::span<const float> losses,
                                  std::span<const int32_t> matches);

 private:
  const MiningSettings settings_;
  Suppressor suppressor_;
  std::vector<int32_t> selected_;
};

}  // namespace muster::detection
