#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/detection/argmax_matcher.h"
#include "trainer/detection/box_coder.h"

namespace muster::detection {

// The objects of one image. n may be 0.
struct GroundTruth {
  std::span<const float> boxes;     // [n, 4], in the anchors' unit
  std::span<const int32_t> labels;  // [n]
  std::span<const float> weights;   // [n], 0 to 1; empty: all are 1
};

// The training targets of the anchors of one image; a is the number of anchors.
struct AnchorTargets {
  std::span<int32_t> matches;      // [a], the matched object, kUnmatched or kIgnored
  std::span<int32_t> labels;       // [a], the matched object's label, else unmatched_label
  std::span<float> class_weights;  // [a], the matched object's weight, else negative_class_weight
  std::span<float> codes;          // [a, 4], codes of the matched object's box, else 0
  std::span<float> code_weights;   // [a], the matched object's weight, else 0
};

struct AssignmentSettings {
  MatcherSettings matcher;
  BoxCoder coder;
  int32_t unmatched_label = 0;
  float negative_class_weight = 1;
};

// Computes the training target of each anchor from the anchors' IoU with the objects of an image,
// like the TargetAssigner of the TF Object Detection API. An ignored anchor has both weights 0. An
// object with weight 0 or less claims no anchor. An object whose box overlaps no anchor (because it
// is outside of the image, has no area or exchanged borders, or is not finite) is not matched;
// TensorFlow's code matches it with anchor 0.
class TargetAssigner {
 public:
  TargetAssigner(std::span<const float> anchors, const AssignmentSettings& settings);

  size_t anchors() const { return areas_.size(); }
  // Allocates nothing, for any number of objects. One thread at a time may call it.
  void assign(const GroundTruth& objects, const AnchorTargets& targets);

 private:
  void measure(std::span<const float> object);

  const AssignmentSettings settings_;
  std::vector<float> anchors_;
  // The anchors once more, border by border.
  std::vector<float> ymin_, xmin_, ymax_, xmax_, areas_;
  std::vector<float> similarities_;  // IoU of one object with each anchor
  ArgmaxMatcher matcher_;
};

}  // namespace muster::detection
