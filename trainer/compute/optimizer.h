#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "trainer/compute/loss_sums.h"
#include "trainer/compute/parameter_layout.h"

namespace muster::compute {

// Defaults are Keras's. t is the number of updates including this one, g the mean gradient.
struct Sgd {  // v = momentum v - lr g; p += v (nesterov: p += momentum v - lr g); momentum 0: no
              // slot
  float momentum = 0.0f;
  bool nesterov = false;
};
struct Adam {  // p -= lr sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon)  (Keras,
               // Kingma & Ba 2.1)
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-7f;
};
struct AdamW {  // p -= lr weight_decay p, then Adam's update (Loshchilov & Hutter)
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-7f;
  float weight_decay = 0.004f;
};
using OptimizerSpec = std::variant<Sgd, Adam, AdamW>;

struct UpdateArguments {
  float learning_rate = 0.001f;
  uint64_t t = 1;  // 1-based count of updates (Adam's t)
  // Gradients are sums, and so is the state's segment of them: multiplied by these.
  float inverse_weight = 1.0f;
  float inverse_rows = 1.0f;
  // For gradients of the rows that these sums are of.
  void divide_by(const LossSums& sums) {
    inverse_weight = sums.weight > 0 ? 1.0f / static_cast<float>(sums.weight) : 0.0f;
    inverse_rows = 1.0f / static_cast<float>(sums.rows);
  }
};

// An update rule over ranges of the flat buffers. Segments differ: trainable is updated by the
// rule, frozen is left alone, state follows `state_momentum`. Thread-safe for disjoint ranges: no
// state but the slots, which the caller owns.
class Optimizer {
 public:
  static std::unique_ptr<Optimizer> create(const OptimizerSpec& spec,
                                           const ParameterLayout& layout);
  virtual ~Optimizer() = default;

  virtual const OptimizerSpec& spec() const = 0;

  // Names of the slots ("m", "v"), each a buffer like the parameters, zero at start.
  virtual const std::vector<std::string>& slot_names() const = 0;

  // Applies to [range.begin, range.end) of the layout. Each span is the memory of that range alone
  // (range.size() floats); `slots` has slot_names().size() of them.
  virtual void apply(Range range, const UpdateArguments& arguments, std::span<float> parameters,
                     std::span<const float> gradients,
                     std::span<const std::span<float>> slots) const = 0;
};

// Learning rate by committed step: of the update with so many before it. Formulas as Keras's
// schedules.
struct Constant {};
struct Piecewise {  // values[i] while step <= boundaries[i], values.back() after
  std::vector<uint64_t> boundaries;
  std::vector<double> values;  // one more than boundaries; replace learning_rate
};
struct Exponential {  // lr * rate^(step / decay_steps); staircase: floor of the quotient
  uint64_t decay_steps = 1;
  double rate = 0.96;
  bool staircase = false;
};
struct Cosine {  // lr * ((1 - alpha) * (1 + cos(pi min(step, n) / n)) / 2 + alpha)
  uint64_t decay_steps = 1;
  double alpha = 0.0;
};
struct Schedule {
  double learning_rate = 0.001;
  std::variant<Constant, Piecewise, Exponential, Cosine> shape;
  // First steps: linear, lr * (step + 1) / warmup_steps; the shape starts after. Keras has the rate
  // of the step before, so that its first update changes nothing.
  uint64_t warmup_steps = 0;
  double at(uint64_t step) const;
};

}  // namespace muster::compute
