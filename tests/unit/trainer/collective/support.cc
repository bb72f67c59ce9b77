#include "tests/unit/trainer/collective/support.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "tests/unit/trainer/extended.h"
#include "trainer/collective/slice_update.h"

namespace muster::collective::testing {

namespace {

compute::ParameterLayout layout_of(size_t floats) {
  const auto tensor = [](const std::string& name, size_t count) {
    compute::ParameterTensor tensor;
    tensor.name = name;
    tensor.shape = {static_cast<int64_t>(count)};
    tensor.count = count;
    tensor.regularized = true;
    return tensor;
  };
  return compute::ParameterLayout({tensor("a", floats / 3 + 1), tensor("b", floats * 2 / 3)});
}

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

// To the nearest bfloat16, of which the even one where two are as near.
float bfloat16(float value) {
  int exponent = 0;
  const float mantissa = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8);
}

float plain_sum(std::span<const compute::Floats> leaves, size_t at, bool rounded) {
  if (leaves.size() == 1) return leaves[0][at];
  const size_t half = std::bit_floor(leaves.size() - 1);
  const float left = plain_sum(leaves.first(half), at, rounded);
  const float right = plain_sum(leaves.subspan(half), at, rounded);
  return rounded ? bfloat16(left) + bfloat16(right) : left + right;
}

}  // namespace

bool Reference::State::operator==(const State& other) const {
  return step == other.step && buffers.size() == other.buffers.size() &&
         std::equal(buffers.begin(), buffers.end(), other.buffers.begin(),
                    [](const auto& a, const auto& b) {
                      return a.size() == b.size() &&
                             std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
                    });
}

std::vector<std::span<float>> Reference::State::slots() {
  return {buffers.begin() + 1, buffers.end()};
}

Reference::Reference(const compute::OptimizerSpec& optimizer, size_t floats, int replicas,
                     bool rounded)
    : Reference(optimizer, layout_of(floats), replicas, rounded) {}

Reference::Reference(const compute::OptimizerSpec& optimizer,
                     const compute::ParameterLayout& layout, int replicas, bool rounded)
    : replicas_(replicas),
      rounded_(rounded),
      layout_(layout),
      optimizer_(compute::Optimizer::create(optimizer, layout_)) {}

SharedState::Shape Reference::shape(int members) const {
  return shape_of({.members = members, .replicas = replicas_, .rounded = rounded_}, *optimizer_);
}

Reference::State Reference::empty(uint64_t step) const {
  return {step, std::vector<compute::Floats>(1 + slots(), compute::Floats(floats()))};
}

Reference::State Reference::initial(uint64_t step) const {
  State state = empty(step);
  for (size_t i = 0; i < floats(); ++i)
    state.buffers[0][i] = std::sin(static_cast<float>(i * i + 1));
  return state;
}

void Reference::advance(State& state) const {
  compute::Floats sum = gradient(state.step, {0, replicas_}, state.buffers[0]);
  if (rounded_) std::ranges::transform(sum, sum.begin(), bfloat16);
  optimizer_->apply({0, floats()}, arguments(state.step, sums(state.step)), state.buffers[0], sum,
                    state.slots());
  ++state.step;
}

compute::LossSums Reference::sums(uint64_t step, int replica) const {
  const uint64_t hash = mix(step, static_cast<uint64_t>(replica));
  compute::LossSums sums;
  sums.rows = static_cast<int64_t>(1 + hash % 4);
  sums.weight = static_cast<double>(sums.rows);
  sums.terms[0] = static_cast<double>(sums.rows / 2);
  sums.loss = 1.0 / static_cast<double>(1 + hash % 1000);
  return sums;
}

compute::LossSums Reference::sums(uint64_t step) const {
  compute::LossSums all;
  for (int replica = 0; replica < replicas_; ++replica) all += sums(step, replica);
  return all;
}

// Of magnitudes so different that the order of adding up shows.
compute::Floats Reference::gradient(uint64_t step, compute::Subtree node,
                                    std::span<const float> parameters) const {
  std::vector<compute::Floats> leaves;
  for (int replica = node.begin; replica < node.end; ++replica) {
    const uint64_t seed = mix(mix(11, step), static_cast<uint64_t>(replica));
    compute::Floats& leaf = leaves.emplace_back(parameters.size());
    for (size_t i = 0; i < leaf.size(); ++i) {
      const uint64_t hash = mix(seed + i, std::bit_cast<uint32_t>(parameters[i]));
      const auto value = static_cast<float>(static_cast<int32_t>(hash >> 32)) * 0x1p-31f;
      leaf[i] = value * static_cast<float>(1u << (hash & 15)) * 0x1p-8f;
    }
  }
  compute::Floats sum(parameters.size());
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = plain_sum(leaves, i, rounded_);
  return sum;
}

compute::UpdateArguments Reference::arguments(uint64_t step, const compute::LossSums& all) const {
  compute::UpdateArguments arguments;
  arguments.learning_rate = 0.01f / static_cast<float>(1 + step % 5);
  arguments.t = step + 1;
  arguments.divide_by(all);
  return arguments;
}

std::vector<compute::OptimizerSpec> optimizers() {
  compute::Sgd momentum;
  momentum.momentum = 0.9f;
  compute::OptimizerSpec averaged = compute::Sgd{};
  averaged.average = 0.9;
  const compute::RmsProp rms{0.9f, 0.9f, 1.0f};
  return {compute::Sgd{}, momentum, compute::Adam{}, compute::Lamb{}, rms, averaged, extended(rms)};
}

namespace {

std::string name(const compute::Sgd& sgd) {
  return sgd.momentum == 0 ? "Sgd" : "Momentum";
}
std::string name(const compute::Adam&) {
  return "Adam";
}
std::string name(const compute::AdamW&) {
  return "AdamW";
}
std::string name(const compute::Lamb&) {
  return "Lamb";
}
std::string name(const compute::RmsProp&) {
  return "RmsProp";
}

}  // namespace

std::string name_of(const compute::OptimizerSpec& optimizer) {
  const std::string prefix = optimizer.clip_norm ? "Extended" : optimizer.average ? "Averaged" : "";
  return prefix + std::visit([](const auto& kind) { return name(kind); }, optimizer.kind);
}

Session::Arguments arguments_of(const Reference& reference, uint64_t step) {
  return
      [&reference, step](const compute::LossSums& all) { return reference.arguments(step, all); };
}

Session::StepResult make_step(HostSession& session, const Reference& reference, uint64_t step,
                              const Session::Watch& watch, bool compare) {
  std::vector<compute::LossSums> sums;
  for (size_t i = 0; i < session.nodes().size(); ++i) {
    const compute::Subtree node = session.nodes()[i];
    const compute::Floats gradient = reference.gradient(step, node, session.parameters());
    std::copy(gradient.begin(), gradient.end(), session.gradients(i).begin());
    for (int replica = node.begin; replica < node.end; ++replica)
      sums.push_back(reference.sums(step, replica));
  }
  session.complete(reference.floats() / 2);  // half of it may leave early
  Contribution contribution(sums);
  contribution.compare = compare;
  return session.step(step, contribution, arguments_of(reference, step), watch);
}

Reference::State copy_of(Session& session, const Reference& reference, uint64_t step) {
  Reference::State state = reference.empty(step);
  session.copy(state.buffers[0], state.slots(), arguments_of(reference, step - 1));
  return state;
}

}  // namespace muster::collective::testing
