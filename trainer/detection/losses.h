#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace muster::detection {

// The losses of the anchors of an image, or of many images one after another. a is the number of
// anchors, w the number of logits of each: the classes, and the background where it has a logit. A
// label is the index of the logit that should be large.
//
// Losses are computed for all anchors, gradients only for anchors that hard-example mining selects
// (see hard_example_miner.h); so each loss has two functions. `weights` multiplies losses. `scales`
// multiplies gradients: an anchor's weight times all later factors of its loss, and 0 for an anchor
// that is left out. An anchor with weight or scale 0 has loss or gradients 0, whatever its logits
// are; otherwise a NaN logit makes the loss NaN.

// The sum over the logits x of the binary cross entropy with target z, which is 1 for the anchor's
// label and 0 for all others:  max(x, 0) - x z + ln(1 + exp(-|x|)).  A label below 0 means that all
// targets are 0. A term below 1e-16 may be 0. (WeightedSigmoidClassificationLoss, summed over the
// classes.)
// logits: [a, w]; labels, weights and losses: [a].
void sigmoid_losses(std::span<const float> logits, std::span<const int32_t> labels,
                    std::span<const float> weights, std::span<float> losses);
// gradients: [a, w], scale (1 / (1 + exp(-x)) - z).
void sigmoid_gradients(std::span<const float> logits, std::span<const int32_t> labels,
                       std::span<const float> scales, std::span<float> gradients);

// The cross entropy of the softmax of x / logit_scale:  ln(sum of exp(x / logit_scale)) -
// x[label] / logit_scale.  Labels are from 0 to w - 1. (WeightedSoftmaxClassificationLoss.)
// Shapes as above.
void softmax_losses(std::span<const float> logits, std::span<const int32_t> labels,
                    std::span<const float> weights, float logit_scale, std::span<float> losses);
void softmax_gradients(std::span<const float> logits, std::span<const int32_t> labels,
                       std::span<const float> scales, float logit_scale,
                       std::span<float> gradients);

// The sum over an anchor's four codes of the Huber loss of the difference d between code and
// target:  d d / 2 where |d| <= delta, else delta (|d| - delta / 2).  (Girshick: Fast R-CNN,
// equation 3, and WeightedSmoothL1LocalizationLoss.)
// codes, targets and gradients: [a, 4]; weights, scales and losses: [a].
void smooth_l1_losses(std::span<const float> codes, std::span<const float> targets,
                      std::span<const float> weights, float delta, std::span<float> losses);
void smooth_l1_gradients(std::span<const float> codes, std::span<const float> targets,
                         std::span<const float> scales, float delta, std::span<float> gradients);

// Write the scores of logits, both [a, w]: the logistic function of each logit, or the softmax over
// an anchor's logits divided by logit_scale. Scores and logits may share memory.
void sigmoid_scores(std::span<const float> logits, std::span<float> scores);
void softmax_scores(std::span<const float> logits, size_t width, float logit_scale,
                    std::span<float> scores);

// The loss of a detector's logits, and the scores that belong to it.
struct ClassificationLoss {
  enum class Kind { sigmoid, softmax };

  Kind kind = Kind::sigmoid;
  float logit_scale = 1;  // only for softmax; above 0

  // The functions below call the functions above.
  void losses(std::span<const float> logits, std::span<const int32_t> labels,
              std::span<const float> weights, std::span<float> losses) const;
  void gradients(std::span<const float> logits, std::span<const int32_t> labels,
                 std::span<const float> scales, std::span<float> gradients) const;
  void scores(std::span<const float> logits, size_t width, std::span<float> scores) const;

  bool operator==(const ClassificationLoss&) const = default;
};

}  // namespace muster::detection
