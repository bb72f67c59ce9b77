#include "trainer/detection/losses.h"

#include <algorithm>
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

float logistic(float x) {
  const float small = std::exp(-std::abs(x));
  return (x >= 0 ? 1.0f : small) / (1.0f + small);
}

// Returns the sum of ln(1 + exp(-|x|)). One logarithm is taken of a product of many terms, for it
// costs more than the rest; a term is at most 2, and a double holds 2^1023.
double sum_of_logs(std::span<const float> logits) {
  constexpr size_t kTerms = 1000;
  double sum = 0;
  for (size_t begin = 0; begin < logits.size(); begin += kTerms) {
    double product = 1;
    for (const float x : logits.subspan(begin, std::min(kTerms, logits.size() - begin)))
      product *= 1.0 + static_cast<double>(std::exp(-std::abs(x)));
    sum += std::log(product);
  }
  return sum;
}

double sigmoid_loss(std::span<const float> logits, int32_t label) {
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const float x = static_cast<int32_t>(i) == label ? -logits[i] : logits[i];
    sum += x < 0 ? 0 : x;  // max(x, 0) - x z
  }
  return sum + sum_of_logs(logits);
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

}  // namespace muster::detection
