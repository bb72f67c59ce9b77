#pragma once

#include <cstdint>
#include <limits>

namespace muster::compute {

enum class Rule : int32_t { sgd, momentum, nesterov, adam, rms_prop };

// An optimizer's formula for one tensor and one update, with every scalar already computed, for the
// inner loop of any backend; see optimizer.h for the formulas.
struct UpdateRule {
  Rule rule = Rule::sgd;
  float gradient_scale = 1.0f;  // 1 / rows
  // If `shaped`, the formula uses, in place of the mean gradient g, the gradient after L2 and
  // clipping: clip_factor * (g + l2 * p, limited to [-most, most]).
  bool shaped = false;
  float l2 = 0.0f;
  float most = std::numeric_limits<float>::infinity();
  float clip_factor = 1.0f;
  bool averaged = false;       // whether there is a moving average
  float average_taken = 0.0f;  // average += average_taken * (p - average) after the update
  float rate = 0.0f;   // learning rate with its multiplier and, for Adam, the bias corrections
  float decay = 0.0f;  // p -= decay * p, first
  float momentum = 0.0f;
  float beta1 = 0.0f, beta2 = 0.0f;  // RmsProp: beta2 is its decay
  float epsilon = 0.0f;
};

// `rows` x `columns` of parameters, slots and gradients. Slots and parameters have the same stride.
// The average is there if the rule has one.
struct Update {
  UpdateRule rule;
  int64_t rows = 0, columns = 0;
  float* parameters = nullptr;
  float* first = nullptr;   // momentum's v, Adam's m
  float* second = nullptr;  // Adam's v
  float* average = nullptr;
  int64_t stride = 0;
  const float* gradients = nullptr;
  int64_t gradient_stride = 0;
};

}  // namespace muster::compute
