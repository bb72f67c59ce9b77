#pragma once

#include <cmath>
#include <cstdint>

#include "common/inline.h"

namespace muster::compute {

// The losses that compare each output y of a row with one number t of its target. A row's loss is
// the mean over its outputs. A struct has the settings of a loss and, as at(y, t), its formula,
// which all backends compile.

// What one output has.
struct TargetLoss {
  float loss;
  float slope;     // the derivative of the loss by y
  float term = 0;  // what the output adds to the loss's term, if it has one
};

// d^2 / 2 if d <= delta, and delta (d - delta / 2) if d is larger. d is |y - t|.
struct Huber {
  static constexpr int64_t kTerms = 0;
  float delta = 1.0f;  // > 0

  MUSTER_INLINE TargetLoss at(float y, float t) const {
    const float difference = y - t;
    const float distance = ::fabsf(difference);
    if (distance <= delta) return {0.5f * difference * difference, difference};
    return {delta * (distance - 0.5f * delta), ::copysignf(delta, difference)};
  }
  bool operator==(const Huber&) const = default;
};

// -positive_weight t ln(p) - (1 - t) ln(1 - p), where p = 1 / (1 + exp(-y)) is the probability
// that the target is 1 and not 0. The term is 1 if that is decided correctly.
struct BinaryCrossEntropy {
  static constexpr int64_t kTerms = 1;
  float positive_weight = 1.0f;  // > 0
  float threshold = 0.5f;        // a larger p is taken for a 1

  MUSTER_INLINE static float probability(float y) {
    const float small = ::expf(-::fabsf(y));
    return (y < 0 ? small : 1.0f) / (1.0f + small);
  }
  MUSTER_INLINE static bool is_positive(float t) { return t > 0.5f; }
  MUSTER_INLINE bool decides(float y) const { return probability(y) > threshold; }
  MUSTER_INLINE TargetLoss at(float y, float t) const {
    const float rest = ::log1pf(::expf(-::fabsf(y)));
    const float of_positive = positive_weight * t, of_negative = 1.0f - t;
    return {of_negative * ((y > 0 ? y : 0) + rest) + of_positive * ((y < 0 ? -y : 0) + rest),
            of_negative * probability(y) - of_positive * probability(-y),
            decides(y) == is_positive(t) ? 1.0f : 0.0f};
  }
  bool operator==(const BinaryCrossEntropy&) const = default;
};

// exp(y) - t y: y is the logarithm of the rate of the counts t. (PyTorch's PoissonNLLLoss with
// log_input; Keras's takes the rate itself.)
struct Poisson {
  static constexpr int64_t kTerms = 0;

  MUSTER_INLINE TargetLoss at(float y, float t) const {
    const float rate = ::expf(y);
    return {rate - t * y, rate - t};
  }
  bool operator==(const Poisson&) const = default;
};

// q (t - y) if t is larger than y, else (1 - q) (y - t): the pinball loss. It is least where the
// share q of the targets is below y. A row has an output for each target and quantile: those of the
// first quantile come first.
struct Quantile {
  static constexpr int64_t kTerms = 0;
  static constexpr int64_t kMost = 32;
  float quantiles[kMost] = {0.5f};  // each between 0 and 1
  int64_t count = 1;

  // `number` is that of the quantile.
  MUSTER_INLINE TargetLoss at(float y, float t, int64_t number) const {
    const float above = t - y, quantile = quantiles[number];
    if (above > 0) return {quantile * above, -quantile};
    return {(quantile - 1.0f) * above, above < 0 ? 1.0f - quantile : 0.0f};
  }
  bool operator==(const Quantile&) const = default;
};

// Returns what an output of a row has; `targets` are the row's `count` targets.
template <class Loss>
MUSTER_INLINE TargetLoss loss_of_output(const Loss& loss, const float* y, const float* targets,
                                        int64_t count, int64_t output) {
  if constexpr (requires { loss.quantiles; })
    return loss.at(y[output], targets[output % count], output / count);
  else
    return loss.at(y[output], targets[output]);
}

}  // namespace muster::compute
