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

// The defaults are Keras's. t is the number of updates including this one, g the mean gradient.
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
// u = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay p, with m and v as in
// Adam; p -= lr |p| / |u| u, with the norms of the whole tensor, or p -= lr u if one of the norms
// is 0 (You et al. 2020, algorithm 2, with the identity as phi). The decay is the paper's.
struct Lamb {
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-7f;
  float weight_decay = 0.01f;
};
// s = decay s + (1 - decay) g^2; v = momentum v + lr g / sqrt(s + epsilon); p -= v. s is 1 at
// start. That is TensorFlow's tf.compat.v1.train.RMSPropOptimizer, not Keras's.
struct RmsProp {
  float decay = 0.9f;
  float momentum = 0.0f;
  float epsilon = 1e-10f;
};
using OptimizerSpec = std::variant<Sgd, Adam, AdamW, Lamb, RmsProp>;

// Whether the update of a float depends on other floats of its tensor. Then a process that updates
// a part of the parameters must have whole tensors.
bool needs_whole_tensors(const OptimizerSpec& spec);

// Returns the ranges that parameter servers, or others who share the work, update: ranges of rows,
// or of whole tensors if the optimizer needs them.
std::vector<Range> shard_ranges(const OptimizerSpec& spec, const ParameterLayout& layout,
                                int shards);

struct UpdateArguments {
  float learning_rate = 0.001f;
  uint64_t t = 1;  // 1-based count of updates (Adam's t)
  // The factors for the gradients, which are sums, and for their state segment.
  float inverse_weight = 1.0f;
  float inverse_rows = 1.0f;
  // Used only by an optimizer that needs whole tensors: the factor of the learning rate for each
  // tensor of the layout, from TensorRatios::write(). If it is empty, apply() measures the ratios
  // itself.
  std::span<const float> ratios;
  // Sets the factors for gradients over the rows of `sums`.
  void divide_by(const LossSums& sums) {
    inverse_weight = sums.weight > 0 ? 1.0f / static_cast<float>(sums.weight) : 0.0f;
    inverse_rows = 1.0f / static_cast<float>(sums.rows);
  }
};

// Sums of squares over a piece of a tensor.
struct Squares {
  double parameters = 0;
  double direction = 0;  // of u, the direction of the update
  Squares& operator+=(const Squares& other);
  float ratio() const;  // of the norms; 1 where one of them is 0
};

// An update rule over ranges of the flat buffers. Trainable parameters are updated by the rule,
// frozen ones are left alone, and state follows `state_momentum`. Thread-safe for disjoint ranges:
// there is no state except the slots, which the caller owns.
class Optimizer {
 public:
  static std::unique_ptr<Optimizer> create(const OptimizerSpec& spec,
                                           const ParameterLayout& layout);
  virtual ~Optimizer() = default;

  virtual const OptimizerSpec& spec() const = 0;

  // Returns the names of the slots ("m", "v"). Each slot is a buffer like the parameters.
  virtual const std::vector<std::string>& slot_names() const = 0;
  // Returns the value that all floats of a slot start with.
  virtual float slot_start(size_t slot) const = 0;

  // Updates [range.begin, range.end) of the layout. Each span is the memory of that range alone
  // (range.size() floats); `slots` has slot_names().size() of them. Throws Invalid for other sizes,
  // and if the optimizer needs whole tensors, has no ratios and the range cuts a tensor.
  virtual void apply(Range range, const UpdateArguments& arguments, std::span<float> parameters,
                     std::span<const float> gradients,
                     std::span<const std::span<float>> slots) const = 0;

  bool needs_whole_tensors() const { return compute::needs_whole_tensors(spec()); }
  virtual const ParameterLayout& layout() const = 0;
  // Used only by an optimizer that needs whole tensors, before it is applied. Returns the squares
  // that a piece of a trainable tensor adds to those of the tensor; `tensor` is its index in the
  // layout, and the piece has at most TensorRatios::kChunk floats. The memory is as for apply();
  // none of it is written.
  virtual Squares measure(size_t tensor, Range piece, const UpdateArguments& arguments,
                          std::span<const float> parameters, std::span<const float> gradients,
                          std::span<const std::span<const float>> slots) const = 0;
};

// The learning rate of the update that has `step` updates before it. The formulas are those of
// Keras's schedules.
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
  // For the first steps the rate is linear, lr * (step + 1) / warmup_steps; the shape starts after
  // them. Keras takes the rate of the step before, so that its first update changes nothing.
  uint64_t warmup_steps = 0;
  double at(uint64_t step) const;
};

}  // namespace muster::compute
