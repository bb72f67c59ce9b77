#include "trainer/compute/optimizer.h"

#include <algorithm>
#include <cmath>

#include "common/error.h"
#include "trainer/compute/cpu/kernels.h"
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

std::vector<std::string> names_of(const OptimizerSpec& spec) {
  if (const Sgd* sgd = std::get_if<Sgd>(&spec)) {
    return sgd->momentum == 0.0f ? std::vector<std::string>{} : std::vector<std::string>{"v"};
  }
  return {"m", "v"};
}

class RuleOptimizer : public Optimizer {
 public:
  RuleOptimizer(const OptimizerSpec& spec, const ParameterLayout& layout)
      : spec_(spec), layout_(layout), names_(names_of(spec)), kernels_(cpu::kernels()) {}

  const OptimizerSpec& spec() const override { return spec_; }
  const std::vector<std::string>& slot_names() const override { return names_; }

  void apply(Range range, const UpdateArguments& arguments, std::span<float> parameters,
             std::span<const float> gradients,
             std::span<const std::span<float>> slots) const override {
    check(range, parameters.size(), gradients.size(), slots);
    const host::FlushSubnormals flush;
    for (const ParameterTensor& tensor : layout_.tensors()) {
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
      update.rule = make_rule(spec_, tensor, arguments);
      update.rows = 1;
      update.columns = static_cast<int64_t>(piece.size());
      update.parameters = &parameters[at];
      update.gradients = &gradients[at];
      if (!slots.empty()) update.first = &slots[0][at];
      if (slots.size() > 1) update.second = &slots[1][at];
      kernels_.update(update);
    }
  }

 private:
  void check(Range range, size_t parameters, size_t gradients,
             std::span<const std::span<float>> slots) const {
    bool fits = range.begin <= range.end && range.end <= layout_.size() &&
                parameters == range.size() && gradients == range.size() &&
                slots.size() == names_.size();
    for (const std::span<float>& slot : slots) fits &= slot.size() == range.size();
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
  const cpu::Kernels& kernels_;
};

}  // namespace

UpdateRule make_rule(const OptimizerSpec& spec, const ParameterTensor& tensor,
                     const UpdateArguments& arguments) {
  const float rate = arguments.learning_rate;
  UpdateRule rule = std::visit(
      [&](const auto& s) { return rule_of(s, rate, tensor.weight_decay_multiplier, arguments.t); },
      spec);
  rule.gradient_scale = arguments.inverse_weight;
  return rule;
}

std::unique_ptr<Optimizer> Optimizer::create(const OptimizerSpec& spec,
                                             const ParameterLayout& layout) {
  return std::make_unique<RuleOptimizer>(spec, layout);
}

}  // namespace muster::compute
