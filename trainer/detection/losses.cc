#include "trainer/detection/losses.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace muster::detection {

namespace {

// Rows of `width` values for each anchor.
template <typename Float>
std::span<Float> row_of(std::span<Float> values, size_t anchor, size_t width) {
  return values.subspan(anchor * width, width);
}

size_t width_of(std::span<const float> logits, std::span<const int32_t> labels) {
  return labels.empty() ? 0 : logits.size() / labels.size();
}

// Returns exp(x) for x <= 0, by the polynomial of the Cephes library: with an error of at most
// 2e-7, and not below 1e-38. The compiler can vectorize loops with it, but not loops with std::exp.
inline float exp_of_negative(float x) {
  constexpr float kRound = 12582912;  // 1.5 * 2^23: a sum with it has no fraction
  const float clamped = x < -87.0f ? -87.0f : x;
  const float shifted = clamped * 1.44269504f + kRound;
  const float power = shifted - kRound;
  const float r = clamped - power * 0.693359375f + power * 2.12194440e-4f;
  float sum = 1.9875691500e-4f;
  sum = sum * r + 1.3981999507e-3f;
  sum = sum * r + 8.3334519073e-3f;
  sum = sum * r + 4.1665795894e-2f;
  sum = sum * r + 1.6666665459e-1f;
  sum = sum * r + 5.0000001201e-1f;
  const float fraction = sum * r * r + r + 1.0f;
  return fraction * std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) + 127u) << 23);
}

float logistic(float x) {
  const float small = exp_of_negative(-std::abs(x));
  return (x >= 0 ? 1.0f : small) / (1.0f + small);
}

// Goes through the logits in blocks, in vectorized loops. For the label, max(x, 0) - x is max(-x,
// 0). One logarithm is taken of a product of many terms, because the logarithm costs more than
// everything else; a term is at most 2, and a double holds 2^1023. Four products and sums side by
// side do not wait for each other.
double sigmoid_loss(std::span<const float> logits, int32_t label) {
  constexpr size_t kBlock = 256;
  constexpr size_t kLanes = 4;
  std::array<float, kBlock> small;
  std::array<float, kBlock> positive;
  double loss = 0;
  for (size_t begin = 0; begin < logits.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, logits.size() - begin);
    const float* x = logits.data() + begin;
    for (size_t i = 0; i < count; ++i) {
      small[i] = exp_of_negative(-std::abs(x[i]));
      positive[i] = x[i] < 0 ? 0 : x[i];
    }
    if (label >= 0 && static_cast<size_t>(label) - begin < count) {
      const size_t at = static_cast<size_t>(label) - begin;
      positive[at] = x[at] > 0 ? 0 : -x[at];
    }
    std::array<double, kLanes> products = {1, 1, 1, 1};
    std::array<double, kLanes> sums = {};
    for (size_t i = 0; i < count; ++i) {
      products[i % kLanes] *= 1.0 + static_cast<double>(small[i]);
      sums[i % kLanes] += static_cast<double>(positive[i]);
    }
    loss += (sums[0] + sums[1]) + (sums[2] + sums[3]);
    loss += std::log((products[0] * products[1]) * (products[2] * products[3]));
  }
  return loss;
}

// Writes the softmax of the logits divided by `logit_scale`.
void softmax(std::span<const float> logits, float logit_scale, std::span<float> shares) {
  const float largest = *std::ranges::max_element(logits);
  float sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    shares[i] = std::exp((logits[i] - largest) / logit_scale);
    sum += shares[i];
  }
  for (float& share : shares) share /= sum;
}

}  // namespace

void sigmoid_losses(std::span<const float> logits, std::span<const int32_t> labels,
                    std::span<const float> weights, std::span<float> losses) {
  const size_t width = width_of(logits, labels);
  for (size_t anchor = 0; anchor < labels.size(); ++anchor) {
    losses[anchor] = 0;
    if (weights[anchor] == 0) continue;
    const double loss = sigmoid_loss(row_of(logits, anchor, width), labels[anchor]);
    losses[anchor] = weights[anchor] * static_cast<float>(loss);
  }
}

void sigmoid_gradients(std::span<const float> logits, std::span<const int32_t> labels,
                       std::span<const float> scales, std::span<float> gradients) {
  const size_t width = width_of(logits, labels);
  for (size_t anchor = 0; anchor < labels.size(); ++anchor) {
    const auto out = row_of(gradients, anchor, width);
    std::ranges::fill(out, 0.0f);
    if (scales[anchor] == 0) continue;
    const auto in = row_of(logits, anchor, width);
    for (size_t i = 0; i < width; ++i) {
      const float target = static_cast<int32_t>(i) == labels[anchor] ? 1 : 0;
      out[i] = scales[anchor] * (logistic(in[i]) - target);
    }
  }
}

void softmax_losses(std::span<const float> logits, std::span<const int32_t> labels,
                    std::span<const float> weights, float logit_scale, std::span<float> losses) {
  const size_t width = width_of(logits, labels);
  for (size_t anchor = 0; anchor < labels.size(); ++anchor) {
    losses[anchor] = 0;
    if (weights[anchor] == 0) continue;
    const auto in = row_of(logits, anchor, width);
    const float largest = *std::ranges::max_element(in);
    float sum = 0;
    for (const float x : in) sum += std::exp((x - largest) / logit_scale);
    const float wanted = in[static_cast<size_t>(labels[anchor])];
    losses[anchor] = weights[anchor] * (std::log(sum) + (largest - wanted) / logit_scale);
  }
}

void softmax_gradients(std::span<const float> logits, std::span<const int32_t> labels,
                       std::span<const float> scales, float logit_scale,
                       std::span<float> gradients) {
  const size_t width = width_of(logits, labels);
  for (size_t anchor = 0; anchor < labels.size(); ++anchor) {
    const auto out = row_of(gradients, anchor, width);
    std::ranges::fill(out, 0.0f);
    if (scales[anchor] == 0) continue;
    softmax(row_of(logits, anchor, width), logit_scale, out);
    out[static_cast<size_t>(labels[anchor])] -= 1;
    for (float& gradient : out) gradient *= scales[anchor] / logit_scale;
  }
}

void smooth_l1_losses(std::span<const float> codes, std::span<const float> targets,
                      std::span<const float> weights, float delta, std::span<float> losses) {
  for (size_t anchor = 0; anchor < losses.size(); ++anchor) {
    losses[anchor] = 0;
    if (weights[anchor] == 0) continue;
    float sum = 0;
    for (size_t i = 4 * anchor; i < 4 * anchor + 4; ++i) {
      const float distance = std::abs(codes[i] - targets[i]);
      sum += distance <= delta ? 0.5f * distance * distance : delta * (distance - 0.5f * delta);
    }
    losses[anchor] = weights[anchor] * sum;
  }
}

void smooth_l1_gradients(std::span<const float> codes, std::span<const float> targets,
                         std::span<const float> scales, float delta, std::span<float> gradients) {
  for (size_t anchor = 0; anchor < scales.size(); ++anchor) {
    for (size_t i = 4 * anchor; i < 4 * anchor + 4; ++i) {
      const float slope = std::clamp(codes[i] - targets[i], -delta, delta);
      gradients[i] = scales[anchor] == 0 ? 0 : scales[anchor] * slope;
    }
  }
}

void sigmoid_scores(std::span<const float> logits, std::span<float> scores) {
  std::ranges::transform(logits, scores.begin(), logistic);
}

void softmax_scores(std::span<const float> logits, size_t width, float logit_scale,
                    std::span<float> scores) {
  for (size_t begin = 0; begin < logits.size(); begin += width)
    softmax(logits.subspan(begin, width), logit_scale, scores.subspan(begin, width));
}

void ClassificationLoss::losses(std::span<const float> logits, std::span<const int32_t> labels,
                                std::span<const float> weights, std::span<float> losses) const {
  if (kind == Kind::sigmoid) return sigmoid_losses(logits, labels, weights, losses);
  softmax_losses(logits, labels, weights, logit_scale, losses);
}

void ClassificationLoss::gradients(std::span<const float> logits, std::span<const int32_t> labels,
                                   std::span<const float> scales,
                                   std::span<float> gradients) const {
  if (kind == Kind::sigmoid) return sigmoid_gradients(logits, labels, scales, gradients);
  softmax_gradients(logits, labels, scales, logit_scale, gradients);
}

void ClassificationLoss::scores(std::span<const float> logits, size_t width,
                                std::span<float> scores) const {
  if (kind == Kind::sigmoid) return sigmoid_scores(logits, scores);
  softmax_scores(logits, width, logit_scale, scores);
}

}  // namespace muster::detection
