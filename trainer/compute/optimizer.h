#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "trainer/compute/loss_sums.h"
#include "trainer/compute/parameter_layout.h"

namespace muster::compute {

// The defaults are Keras's. t is the number of updates including this one, g the mean gradient,
// after L2 and clipping.
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
using OptimizerKind = std::variant<Sgd, Adam, AdamW, Lamb, RmsProp>;

// g += factor p, which is the gradient of TensorFlow's regularizer factor / 2 |p|^2.
struct L2 {
  float factor = 0.0f;
  // A pattern (common/text/pattern.h) that matches the names of the regularized tensors; empty: the
  // tensors that the layout says.
  std::string tensors;
};

// A formula, and the settings that can be combined with any formula. L2 is applied first, then
// clipping.
struct OptimizerSpec {
  OptimizerSpec() = default;
  template <typename Kind>
  requires std::constructible_from<OptimizerKind, Kind> OptimizerSpec(Kind formula)
      : kind(std::move(formula)) {}

  OptimizerKind kind;
  std::optional<L2> l2;
  // Each g is limited to [-clip_value, clip_value].
  std::optional<float> clip_value;
  // g of a tensor is multiplied by clip_norm / |g| if its norm is larger. Not with Lamb.
  std::optional<float> clip_norm;
  // The decay of a moving average of the parameters: e += (1 - decay) (p - e) after each update.
  // The average is the last slot, and its first value is the parameters.
  std::optional<double> average;
};

// The name of the slot with the moving average.
inline constexpr const char* kAverageSlot = "average";
// The largest number of slots of an optimizer: two of the formula and the average.
inline constexpr size_t kMostSlots = 3;

// Returns the names of an optimizer's slots, for example "m" and "v": buffers with the layout of
// the parameters that keep values from one update to the next. The moving average comes last.
std::vector<std::string> slot_names_of(const OptimizerSpec& spec);

struct UpdateRule;  // update_rule.h

// Whether the update of a float depends on other floats of its tensor. If so, a process that
// updates a part of the parameters must have whole tensors.
bool needs_whole_tensors(const OptimizerSpec& spec);

// Returns the ranges for parameter servers, or others that share the work of an update. The ranges
// consist of rows, or of whole tensors if the optimizer needs whole tensors.
std::vector<Range> shard_ranges(const OptimizerSpec& spec, const ParameterLayout& layout,
                                int shards);

struct UpdateArguments {
  float learning_rate = 0.001f;
  uint64_t t = 1;  // 1-based count of updates (Adam's t)
  // The factors for the gradients, which are sums, and for their state segment.
  float inverse_weight = 1.0f;
  float inverse_rows = 1.0f;
  // Used only by an optimizer that needs whole tensors: for each tensor of the layout, the factor
  // of the learning rate (Lamb) or of the gradient (clip_norm), from TensorRatios::write(). If it
  // is empty, apply() measures the ratios itself.
  std::span<const float> ratios;
  // Sets the factors for gradients over the rows of `sums`.
  void divide_by(const LossSums& sums) {
    inverse_weight = sums.weight > 0 ? 1.0f / static_cast<float>(sums.weight) : 0.0f;
    inverse_rows = 1.0f / static_cast<float>(sums.rows);
  }
};

// Sums of squares over a piece of a tensor.
struct Squares {
  double parameters = 0;  // only for Lamb
  // Lamb: of u, the direction of the update; else of g, which is to be clipped.
  double direction = 0;
  Squares& operator+=(const Squares& other);
};

// An update rule over ranges of the flat buffers. Trainable parameters are updated by the rule,
// frozen ones are left alone, and state follows `state_momentum`. Thread-safe for disjoint ranges:
// the only state is the slots, which the caller owns.
class Optimizer {
 public:
  // Throws Invalid if the pattern of `l2` matches the name of no trainable tensor.
  static std::unique_ptr<Optimizer> create(const OptimizerSpec& spec,
                                           const ParameterLayout& layout);
  virtual ~Optimizer() = default;

  virtual const OptimizerSpec& spec() const = 0;

  // Returns slot_names_of(spec()).
  virtual const std::vector<std::string>& slot_names() const = 0;
  // Writes the initial values of a slot to `values`; `values` and `parameters` are the same floats
  // of the layout.
  virtual void start_slot(size_t slot, std::span<const float> parameters,
                          std::span<float> values) const = 0;
  // Returns the slot that is a moving average of the trainable parameters, if there is one.
  std::optional<size_t> average_slot() const {
    return spec().average ? std::optional(slot_names().size() - 1) : std::nullopt;
  }

  // Updates [range.begin, range.end) of the layout. Each span is the memory of this range alone
  // (range.size() floats); `slots` has slot_names().size() spans. Throws Invalid for other sizes,
  // and if the optimizer needs whole tensors, has no ratios and the range cuts a tensor.
  virtual void apply(Range range, const UpdateArguments& arguments, std::span<float> parameters,
                     std::span<const float> gradients,
                     std::span<const std::span<float>> slots) const = 0;

  // Returns the scalars of an update of the tensor with this index in the layout, for inner loops.
  // `arguments.ratios` must be there if the optimizer needs whole tensors.
  virtual UpdateRule rule(size_t tensor, const UpdateArguments& arguments) const = 0;

  bool needs_whole_tensors() const { return compute::needs_whole_tensors(spec()); }
  virtual const ParameterLayout& layout() const = 0;
  // Used only by an optimizer that needs whole tensors, before apply(). Returns the sums of squares
  // of one piece of a trainable tensor; `tensor` is the tensor's index in the layout, and the piece
  // has at most TensorRatios::kChunk floats. The memory is as for apply(); nothing is written.
  virtual Squares measure(size_t tensor, Range piece, const UpdateArguments& arguments,
                          std::span<const float> parameters, std::span<const float> gradients,
                          std::span<const std::span<const float>> slots) const = 0;
  // Returns the tensor's ratio, given the squares of the whole tensor.
  virtual float ratio(const Squares& squares) const = 0;
};

}  // namespace muster::compute
