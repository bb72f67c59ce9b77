#include "trainer/compute/optimizer.h"

#include <algorithm>
#include <cmath>

#include "common/error.h"
#include "trainer/compute/cpu/kernels.h"
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

using Names = std::vector<std::string>;

Names names_of(const Sgd& sgd) {
  return sgd.momentum == 0.0f ? Names{} : Names{"v"};
}
Names names_of(const Adam&) {
  return {"m", "v"};
}
Names names_of(const AdamW&) {
  return {"m", "v"};
}
Names names_of(const Lamb&) {
  return {"m", "v"};
}
Names names_of(const RmsProp&) {
  return {"rms", "momentum"};
}

class RuleOptimizer : public Optimizer {
 public:
  RuleOptimizer(const OptimizerSpec& spec, const ParameterLayout& layout)
      : spec_(spec),
        layout_(layout),
        names_(std::visit([](const auto& s) { return names_of(s); }, spec)),
        kernels_(cpu::kernels()) {}

  const OptimizerSpec& spec() const override { return spec_; }
  const std::vector<std::string>& slot_names() const override { return names_; }
  float slot_start(size_t slot) const override {
    return std::holds_alternative<RmsProp>(spec_) && slot == 0 ? 1.0f : 0.0f;
  }
  const ParameterLayout& layout() const override { return layout_; }

  void apply(Range range, const UpdateArguments& arguments, std::span<float> parameters,
             std::span<const float> gradients,
             std::span<const std::span<float>> slots) const override {
    check(range, parameters.size(), gradients.size(), slots);
    if (whole_tensors_ && arguments.ratios.empty())
      return measure_and_apply(range, arguments, parameters, gradients, slots);
    const host::FlushSubnormals flush;
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
      cpu::Update update;
      update.rule =
          make_rule(spec_, tensor, arguments, whole_tensors_ ? arguments.ratios[i] : 1.0f);
      update.rows = 1;
      update.columns = static_cast<int64_t>(piece.size());
      update.parameters = &parameters[at];
      update.gradients = &gradients[at];
      if (!slots.empty()) update.first = &slots[0][at];
      if (slots.size() > 1) update.second = &slots[1][at];
      kernels_.update(update);
    }
  }

  Squares measure(size_t tensor, Range piece, const UpdateArguments& arguments,
                  std::span<const float> parameters, std::span<const float> gradients,
                  std::span<const std::span<const float>> slots) const override {
    check(piece, parameters.size(), gradients.size(), slots);
    const host::FlushSubnormals flush;
    cpu::Measurement measurement;
    measurement.direction =
        make_direction(std::get<Lamb>(spec_), layout_.tensors().at(tensor), arguments);
    measurement.count = static_cast<int64_t>(piece.size());
    measurement.parameters = parameters.data();
    measurement.first = slots[0].data();
    measurement.second = slots[1].data();
    measurement.gradients = gradients.data();
    Squares squares;
    kernels_.measure(measurement, &squares.parameters, &squares.direction);
    return squares;
  }

 private:
  void measure_and_apply(Range range, UpdateArguments arguments, std::span<float> parameters,
                         std::span<const float> gradients,
                         std::span<const std::span<float>> slots) const {
    TensorRatios measured(layout_, range);
    measured.measure_all(*this, arguments, parameters, gradients, slots);
    std::vector<float> ratios(layout_.tensors().size());
    measured.write(ratios);
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
  const bool whole_tensors_ = compute::needs_whole_tensors(spec_);
  const cpu::Kernels& kernels_;
};

}  // namespace

bool needs_whole_tensors(const OptimizerSpec& spec) {
  return std::holds_alternative<Lamb>(spec);
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

float Squares::ratio() const {
  if (parameters == 0.0 || direction == 0.0) return 1.0f;
  return static_cast<float>(std::sqrt(parameters) / std::sqrt(direction));
}

UpdateRule make_rule(const OptimizerSpec& spec, const ParameterTensor& tensor,
                     const UpdateArguments& arguments, float ratio) {
  const float rate = arguments.learning_rate * ratio;
  UpdateRule rule = std::visit(
      [&](const auto& s) { return rule_of(s, rate, tensor.weight_decay_multiplier, arguments.t); },
      spec);
  rule.gradient_scale = arguments.inverse_weight;
  return rule;
}

UpdateRule make_direction(const Lamb& lamb, const ParameterTensor& tensor,
                          const UpdateArguments& arguments) {
  UpdateRule rule = rule_of(lamb, 1.0f, tensor.weight_decay_multiplier, arguments.t);
  rule.gradient_scale = arguments.inverse_weight;
  return rule;
}

std::unique_ptr<Optimizer> Optimizer::create(const OptimizerSpec& spec,
                                             const ParameterLayout& layout) {
  return std::make_unique<RuleOptimizer>(spec, layout);
}

}  // namespace muster::compute
