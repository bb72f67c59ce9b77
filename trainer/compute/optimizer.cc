#include "trainer/compute/optimizer.h"

#include <algorithm>
#include <cmath>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/text/pattern.h"
#include "trainer/compute/cpu/check/checked_kernels.h"
#include "trainer/compute/tensor_ratios.h"
#include "trainer/compute/update_rule.h"
#include "trainer/host/instruction_set.h"

namespace muster::compute {
namespace {

UpdateRule adam_rule(float beta1, float beta2, float epsilon, float rate, uint64_t t) {
  const double steps = static_cast<double>(t);
  const double correction =
      std::sqrt(1.0 - std::pow(double(beta2), steps)) / (1.0 - std::pow(double(beta1), steps));
  UpdateRule rule;
  rule.rule = Rule::adam;
  rule.rate = static_cast<float>(rate * correction);
  rule.beta1 = beta1;
  rule.beta2 = beta2;
  rule.epsilon = epsilon;
  return rule;
}

UpdateRule rule_of(const Sgd& sgd, float rate, float, uint64_t) {
  UpdateRule rule;
  rule.rule = sgd.momentum == 0.0f ? Rule::sgd : sgd.nesterov ? Rule::nesterov : Rule::momentum;
  rule.rate = rate;
  rule.momentum = sgd.momentum;
  return rule;
}

UpdateRule rule_of(const Adam& adam, float rate, float, uint64_t t) {
  return adam_rule(adam.beta1, adam.beta2, adam.epsilon, rate, t);
}

UpdateRule rule_of(const AdamW& adam, float rate, float decay_multiplier, uint64_t t) {
  UpdateRule rule = adam_rule(adam.beta1, adam.beta2, adam.epsilon, rate, t);
  rule.decay = rate * adam.weight_decay * decay_multiplier;
  return rule;
}

// Puts the bias corrections into the rate and epsilon, so that m and v are Adam's.
UpdateRule rule_of(const Lamb& lamb, float rate, float decay_multiplier, uint64_t t) {
  const double root = std::sqrt(1.0 - std::pow(double(lamb.beta2), static_cast<double>(t)));
  UpdateRule rule =
      adam_rule(lamb.beta1, lamb.beta2, static_cast<float>(lamb.epsilon * root), rate, t);
  rule.decay = rate * lamb.weight_decay * decay_multiplier;
  return rule;
}

UpdateRule rule_of(const RmsProp& rms, float rate, float, uint64_t) {
  UpdateRule rule;
  rule.rule = Rule::rms_prop;
  rule.rate = rate;
  rule.momentum = rms.momentum;
  rule.beta2 = rms.decay;
  rule.epsilon = rms.epsilon;
  return rule;
}

// Returns the L2 factor of each tensor of the layout.
std::vector<float> l2_of(const std::optional<L2>& l2, const ParameterLayout& layout) {
  std::vector<float> factors(layout.tensors().size());
  if (!l2) return factors;
  const Pattern pattern(l2->tensors);
  bool any = false;
  for (size_t i = 0; i < factors.size(); ++i) {
    const ParameterTensor& tensor = layout.tensors()[i];
    if (tensor.segment != Segment::trainable) continue;
    if (l2->tensors.empty() ? !tensor.regularized : !pattern.matches(tensor.name)) continue;
    factors[i] = l2->factor;
    any = true;
  }
  if (!any && !l2->tensors.empty())
    throw Invalid(
        "optimizer.l2.tensors: expected a pattern that the name of a trainable tensor "
        "contains, such as " +
            (layout.tensors().empty() ? "none" : layout.tensors().front().name) + "; found \"" +
            l2->tensors + "\"",
        kBadConfig);
  return factors;
}

class RuleOptimizer : public Optimizer {
 public:
  RuleOptimizer(const OptimizerSpec& spec, const ParameterLayout& layout)
      : spec_(spec),
        layout_(layout),
        names_(slot_names_of(spec)),
        l2_(l2_of(spec.l2, layout)),
        kernels_(cpu::kernels()) {}

  const OptimizerSpec& spec() const override { return spec_; }
  const std::vector<std::string>& slot_names() const override { return names_; }
  void start_slot(size_t slot, std::span<const float> parameters,
                  std::span<float> values) const override {
    if (slot == average_slot()) {
      std::ranges::copy(parameters, values.begin());
    } else {
      const bool mean_square = std::holds_alternative<RmsProp>(spec_.kind) && slot == 0;
      std::ranges::fill(values, mean_square ? 1.0f : 0.0f);
    }
  }
  const ParameterLayout& layout() const override { return layout_; }

  UpdateRule rule(size_t tensor, const UpdateArguments& arguments) const override {
    const float ratio = whole_tensors_ ? arguments.ratios[tensor] : 1.0f;
    const float rate = arguments.learning_rate * (spec_.clip_norm ? 1.0f : ratio);
    UpdateRule rule = unscaled(tensor, rate, arguments);
    if (spec_.clip_norm) rule.clip_factor = ratio;
    if (spec_.average) {
      rule.averaged = true;
      rule.average_taken = static_cast<float>(1.0 - *spec_.average);
    }
    return rule;
  }

  void apply(Range range, const UpdateArguments& arguments, std::span<float> parameters,
             std::span<const float> gradients,
             std::span<const std::span<float>> slots) const override {
    check(range, parameters.size(), gradients.size(), slots);
    if (whole_tensors_ && arguments.ratios.empty())
      return measure_and_apply(range, arguments, parameters, gradients, slots);
    const host::FlushSubnormals flush;
    const size_t own_slots = slots.size() - (spec_.average ? 1 : 0);
    for (size_t i = 0; i < layout_.tensors().size(); ++i) {
      const ParameterTensor& tensor = layout_.tensors()[i];
      const Range piece{std::max(range.begin, tensor.offset),
                        std::min(range.end, tensor.offset + tensor.count)};
      if (piece.begin >= piece.end) continue;
      if (tensor.segment == Segment::frozen) continue;
      const size_t at = piece.begin - range.begin;
      if (tensor.segment == Segment::state) {
        kernels_.update_state(static_cast<int64_t>(piece.size()), tensor.state_momentum,
                              arguments.inverse_rows, &parameters[at], &gradients[at]);
        continue;
      }
      Update update;
      update.rule = rule(i, arguments);
      update.rows = 1;
      update.columns = static_cast<int64_t>(piece.size());
      update.parameters = &parameters[at];
      update.gradients = &gradients[at];
      if (own_slots > 0) update.first = &slots[0][at];
      if (own_slots > 1) update.second = &slots[1][at];
      if (spec_.average) update.average = &slots.back()[at];
      kernels_.update(update);
    }
  }

  Squares measure(size_t tensor, Range piece, const UpdateArguments& arguments,
                  std::span<const float> parameters, std::span<const float> gradients,
                  std::span<const std::span<const float>> slots) const override {
    check(piece, parameters.size(), gradients.size(), slots);
    const host::FlushSubnormals flush;
    cpu::Measurement measurement;
    measurement.rule = unscaled(tensor, 1.0f, arguments);
    measurement.count = static_cast<int64_t>(piece.size());
    measurement.parameters = parameters.data();
    measurement.gradients = gradients.data();
    Squares squares;
    if (spec_.clip_norm) {
      squares.direction = kernels_.measure_gradient(measurement);
      return squares;
    }
    measurement.first = slots[0].data();
    measurement.second = slots[1].data();
    kernels_.measure(measurement, &squares.parameters, &squares.direction);
    return squares;
  }

  float ratio(const Squares& squares) const override {
    if (squares.direction == 0.0) return 1.0f;
    const double norm = std::sqrt(squares.direction);
    if (spec_.clip_norm) {
      const auto most = static_cast<double>(*spec_.clip_norm);
      return norm > most ? static_cast<float>(most / norm) : 1.0f;
    }
    return squares.parameters == 0.0 ? 1.0f
                                     : static_cast<float>(std::sqrt(squares.parameters) / norm);
  }

 private:
  // Returns the rule for a learning rate of `rate`, without the tensor's ratio.
  UpdateRule unscaled(size_t tensor, float rate, const UpdateArguments& arguments) const {
    const float decays = layout_.tensors()[tensor].weight_decay_multiplier;
    UpdateRule rule = std::visit(
        [&](const auto& s) { return rule_of(s, rate, decays, arguments.t); }, spec_.kind);
    rule.gradient_scale = arguments.inverse_weight;
    rule.shaped = l2_[tensor] != 0.0f || spec_.clip_value || spec_.clip_norm;
    rule.l2 = l2_[tensor];
    if (spec_.clip_value) rule.most = *spec_.clip_value;
    return rule;
  }

  void measure_and_apply(Range range, UpdateArguments arguments, std::span<float> parameters,
                         std::span<const float> gradients,
                         std::span<const std::span<float>> slots) const {
    TensorRatios measured(layout_, range);
    measured.measure_all(*this, arguments, parameters, gradients, slots);
    std::vector<float> ratios(layout_.tensors().size());
    measured.write(*this, ratios);
    arguments.ratios = ratios;
    apply(range, arguments, parameters, gradients, slots);
  }

  template <class Slots>
  void check(Range range, size_t parameters, size_t gradients, const Slots& slots) const {
    bool fits = range.begin <= range.end && range.end <= layout_.size() &&
                parameters == range.size() && gradients == range.size() &&
                slots.size() == names_.size();
    for (const auto& slot : slots) fits &= slot.size() == range.size();
    if (!fits) {
      throw Invalid("optimizer: range [" + std::to_string(range.begin) + ", " +
                    std::to_string(range.end) + ") of a layout of " +
                    std::to_string(layout_.size()) + " floats needs buffers of its size and " +
                    std::to_string(names_.size()) + " slots; found " + std::to_string(parameters) +
                    ", " + std::to_string(gradients) + " and " + std::to_string(slots.size()) +
                    " slots");
    }
  }

  OptimizerSpec spec_;
  ParameterLayout layout_;
  std::vector<std::string> names_;
  const std::vector<float> l2_;  // one for each tensor
  const bool whole_tensors_ = compute::needs_whole_tensors(spec_);
  const cpu::Kernels& kernels_;
};

}  // namespace

bool needs_whole_tensors(const OptimizerSpec& spec) {
  return std::holds_alternative<Lamb>(spec.kind) || spec.clip_norm.has_value();
}

std::vector<Range> shard_ranges(const OptimizerSpec& spec, const ParameterLayout& layout,
                                int shards) {
  using Borders = ParameterLayout::Borders;
  return layout.partition(shards, needs_whole_tensors(spec) ? Borders::tensors : Borders::rows);
}

Squares& Squares::operator+=(const Squares& other) {
  parameters += other.parameters;
  direction += other.direction;
  return *this;
}

std::unique_ptr<Optimizer> Optimizer::create(const OptimizerSpec& spec,
                                             const ParameterLayout& layout) {
  return std::make_unique<RuleOptimizer>(spec, layout);
}

}  // namespace muster::compute
