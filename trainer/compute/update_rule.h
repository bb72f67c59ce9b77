#pragma once

#include <cstdint>

#include "trainer/compute/optimizer.h"

namespace muster::compute {

enum class Rule : int32_t { sgd, momentum, nesterov, adam, rms_prop };

// An optimizer's formula for one tensor and one update, with every scalar worked out, for the inner
// loop of any backend; see optimizer.h for the formulas.
struct UpdateRule {
  Rule rule = Rule::sgd;
  float gradient_scale = 1.0f;  // 1 / rows
  float rate = 0.0f;            // learning rate with multiplier; Adam: and the bias corrections
  float decay = 0.0f;           // p -= decay * p, first
  float momentum = 0.0f;
  float beta1 = 0.0f, beta2 = 0.0f;  // RmsProp: beta2 is its decay
  float epsilon = 0.0f;
};

// `ratio` is a factor of the learning rate; only an optimizer that needs whole tensors has one.
UpdateRule make_rule(const OptimizerSpec& spec, const ParameterTensor& tensor,
                     const UpdateArguments& arguments, float ratio = 1.0f);

// Returns the rule that would move the parameters by -u: u is `rate` times Adam's quotient plus
// `decay` times the parameter.
UpdateRule make_direction(const Lamb& lamb, const ParameterTensor& tensor,
                          const UpdateArguments& arguments);

}  // namespace muster::compute
