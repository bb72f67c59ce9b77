#pragma once

#include "trainer/compute/cuda/kernels/anchors.h"
#include "trainer/compute/cuda/kernels/losses.h"
#include "trainer/detection/box_coder.h"
#include "trainer/detection/losses.h"

namespace muster::compute::cuda {

// Returns the two numbers for the softmax of x / logit_scale: the largest of x, and the sum of
// exp((x - largest) / logit_scale).
MUSTER_INLINE SoftmaxScale softmax_scale(const float* x, int64_t count, float logit_scale) {
  SoftmaxScale scale{x[0], 0.0f};
  for (int64_t i = 1; i < count; ++i) scale.most = maximum(scale.most, x[i]);
  for (int64_t i = 0; i < count; ++i) scale.total += exponential((x[i] - scale.most) / logit_scale);
  return scale;
}

// Computes the losses of all anchors, and the boxes that they predict. y is [rows, count * (4 +
// logits)].
struct AnchorLosses {
  int64_t rows, logits;
  const float* y;
  detection::ClassificationLoss classification;
  detection::BoxCoder coder;
  float delta;  // of smooth L1
  Anchors anchors;

  MUSTER_INLINE Shape shape() const { return blocks_for(rows * anchors.count); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    for_items(block, rows * anchors.count, [&](uint32_t i) {
      const auto count = static_cast<uint32_t>(anchors.count);
      const int64_t row = i / count, anchor = i % count;
      const float* output = y + row * anchors.count * (4 + logits);
      const float* code = output + 4 * anchor;
      const float* x = output + 4 * anchors.count + logits * anchor;
      const float weight = anchors.class_weights[i];
      anchors.class_losses[i] = weight == 0.0f ? 0.0f : weight * class_loss(x, anchors.labels[i]);
      anchors.code_losses[i] =
          anchors.code_weights[i] == 0.0f
              ? 0.0f
              : anchors.code_weights[i] * code_loss(code, anchors.codes + 4 * i);
      const detection::Box found =
          detection::upright(coder.decode_one(code, box_in(anchors.boxes + 4 * anchor)));
      const float area = detection::area(found);
      write_box(found, anchors.boxes_found + 4 * i);
      anchors.areas[i] = area > 0 && area < INFINITY ? area : 0.0f;
    });
  }

 private:
  MUSTER_INLINE float class_loss(const float* x, int32_t label) const {
    if (classification.kind == detection::ClassificationLoss::Kind::sigmoid) {
      float sum = 0;
      for (int64_t c = 0; c < logits; ++c) {
        const float positive = c == label ? -x[c] : x[c];
        sum += maximum(0.0f, positive) + ::log1pf(exponential(-::fabsf(x[c])));
      }
      return sum;
    }
    const SoftmaxScale scale = softmax_scale(x, logits, classification.logit_scale);
    return ::logf(scale.total) + (scale.most - x[label]) / classification.logit_scale;
  }

  MUSTER_INLINE float code_loss(const float* code, const float* target) const {
    float sum = 0;
    for (int k = 0; k < 4; ++k) sum += Huber{delta}.at(code[k], target[k]).loss;
    return sum;
  }
};

// Writes the gradient of y.
struct AnchorGradients {
  int64_t rows, logits;
  const float* y;
  detection::ClassificationLoss classification;
  float delta;  // of smooth L1
  Anchors anchors;
  float* dy;

  MUSTER_INLINE int64_t width() const { return anchors.count * (4 + logits); }
  MUSTER_INLINE Shape shape() const { return blocks_for(rows * width()); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    for_items(block, rows * width(), [&](uint32_t i) {
      const auto all = static_cast<uint32_t>(width()), each = static_cast<uint32_t>(logits);
      const uint32_t row = i / all, column = i % all;
      const uint32_t codes = 4 * static_cast<uint32_t>(anchors.count);
      const bool code = column < codes;
      const uint32_t logit = column - codes;
      const int64_t at = row * anchors.count + (code ? column / 4 : logit / each);
      const float scale = (code ? anchors.code_scales : anchors.class_scales)[at];
      if (scale == 0.0f) {
        dy[i] = 0;
      } else if (code) {
        const float slope = y[i] - anchors.codes[4 * at + column % 4];
        dy[i] = scale * minimum(delta, maximum(-delta, slope));
      } else {
        dy[i] = scale * slope_of(y + i - logit % each, logit % each, anchors.labels[at]);
      }
    });
  }

 private:
  MUSTER_INLINE float slope_of(const float* x, int64_t c, int32_t label) const {
    const float wanted = c == label ? 1.0f : 0.0f;
    if (classification.kind == detection::ClassificationLoss::Kind::sigmoid) {
      const float small = exponential(-::fabsf(x[c]));
      return (x[c] >= 0 ? 1.0f : small) / (1.0f + small) - wanted;
    }
    const SoftmaxScale scale = softmax_scale(x, logits, classification.logit_scale);
    const float share = exponential((x[c] - scale.most) / classification.logit_scale) / scale.total;
    return (share - wanted) / classification.logit_scale;
  }
};

}  // namespace muster::compute::cuda
