#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/detection/suppressor.h"

namespace muster::detection {

// The settings of the TF Object Detection API's hard_example_miner, with its names and the numbers
// of its ssd_mobilenet_v1.
struct MiningSettings {
  int num_hard_examples = 3000;  // the most that suppression leaves
  float iou_threshold = 0.99f;
  float max_negatives_per_positive = 3;  // 0: any number
  int min_negatives_per_image = 0;       // at least so many are allowed

  bool operator==(const MiningSettings&) const = default;
};

// Selects the anchors of an image whose losses count, as HardExampleMiner of the TF Object
// Detection API does: goes through the anchors by falling loss, and suppresses those whose
// predicted box nearly is a selected one's (see suppressor.h). Of the rest it keeps the matched
// anchors, and the others until there are more unmatched ones than settings allow:
// max_negatives_per_positive for each matched anchor that is left, rounded down, or
// min_negatives_per_image if that is more. An anchor whose loss is NaN is not selected. One thread
// at a time may use a miner.
class HardExampleMiner {
 public:
  // `anchors` is the most that select() is given; then it allocates nothing.
  HardExampleMiner(const MiningSettings& settings, size_t anchors);

  // boxes: [a, 4], the decoded predictions; losses: [a], by which examples are hard: those of
  // classification for ssd_mobilenet_v1; matches: [a], of ArgmaxMatcher. Returns the indices of the
  // anchors, by falling loss. They stay valid until the next call.
  std::span<const int32_t> select(std::span<const float> boxes, std::span<const float> losses,
                                  std::span<const int32_t> matches);

 private:
  const MiningSettings settings_;
  Suppressor suppressor_;
  std::vector<int32_t> selected_;
};

}  // namespace muster::detection
