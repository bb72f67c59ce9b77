#include "tests/unit/trainer/collective/protocol/books.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tests/unit/trainer/one_tensor.h"
#include "tests/unit/trainer/simulation/same_sums.h"

namespace muster::collective::protocol {

namespace {

// A tile for each member of a small group, where they share memory.
size_t floats_of(const Setting& setting) {
  return setting.hosts == Setting::Hosts::two ? 128 : 2 * SharedState::kTile + 320;
}

compute::Sgd momentum() {
  compute::Sgd sgd;
  sgd.momentum = 0.5f;
  return sgd;
}

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

bool same(const checkpoint::Position& a, const checkpoint::Position& b) {
  return a.step == b.step && a.epoch == b.epoch && a.next_batch == b.next_batch &&
         a.optimizer_t == b.optimizer_t && same_sums(a.sums, b.sums);
}

bool same(const State& a, const State& b) {
  return same(a.position, b.position) &&
         std::equal(a.buffers.begin(), a.buffers.end(), b.buffers.begin(), b.buffers.end(),
                    [](const auto& one, const auto& other) {
                      return std::memcmp(one.data(), other.data(), one.size() * sizeof(float)) == 0;
                    });
}

std::string text(const State& state) {
  const checkpoint::Position& position = state.position;
  return "step " + std::to_string(position.step) + " (epoch " + std::to_string(position.epoch) +
         ", batch " + std::to_string(position.next_batch) + ", update " +
         std::to_string(position.optimizer_t) + ", first parameter " +
         std::to_string(state.buffers[0][0]) + ")";
}

}  // namespace

Books::Books(const Setting& setting)
    : setting_(setting),
      layout_(layout_of(floats_of(setting))),
      optimizer_(compute::Optimizer::create(momentum(), layout_)) {}

SharedState::Shape Books::shape(int members, int replicas) const {
  SharedState::Shape shape;
  shape.members = members;
  shape.replicas = replicas;
  shape.floats = layout_.size();
  shape.slots = optimizer_->slot_names().size();
  return shape;
}

loop::Workload Books::workload(int replicas) const {
  spec::TrainingSpec spec;
  spec.batch_size = 1;
  spec.epochs = kEpochs;
  return loop::Workload(spec, static_cast<uint64_t>(setting_.batches), replicas, false);
}

State Books::empty() const {
  return {{}, std::vector<compute::Floats>(2, compute::Floats(layout_.size()))};
}

State Books::initial() const {
  State state = empty();
  for (size_t i = 0; i < layout_.size(); ++i) state.buffers[0][i] = static_cast<float>(1 + i % 7);
  return state;
}

compute::LossSums Books::sums(const checkpoint::Position& position, int replicas,
                              int replica) const {
  const loop::Work work = workload(replicas).part_of(position, replica);
  compute::LossSums sums;
  if (work.first_batch() >= static_cast<uint64_t>(setting_.batches)) return sums;
  sums.rows = 1;
  sums.weight = 1;
  sums.loss = 1.0 / static_cast<double>(3 + work.epoch() * 100 + work.first_batch());
  return sums;
}

// A few numbers of each tile: enough to be told apart by.
compute::Floats Books::gradient(const checkpoint::Position& position, int replicas,
                                compute::Subtree node, std::span<const float> parameters) const {
  compute::Floats sum(parameters.size());
  if (node.size() > 1) {
    sum = gradient(position, replicas, node.first(), parameters);
    const auto second = gradient(position, replicas, node.second(), parameters);
    std::transform(sum.begin(), sum.end(), second.begin(), sum.begin(), std::plus<>());
    return sum;
  }
  const loop::Work work = workload(replicas).part_of(position, node.begin);
  if (work.first_batch() >= static_cast<uint64_t>(setting_.batches)) return sum;
  const uint64_t seed = mix(mix(5, work.epoch()), work.first_batch());
  for (size_t i = work.first_batch() % 3; i < sum.size(); i += 61) {
    const uint64_t hash = mix(seed + i, std::bit_cast<uint32_t>(parameters[i]));
    sum[i] = static_cast<float>(static_cast<int32_t>(hash >> 32)) * 0x1p-31f *
             static_cast<float>(1 + (hash & 255));
  }
  return sum;
}

compute::UpdateArguments Books::arguments(uint64_t step, const compute::LossSums& all) const {
  compute::UpdateArguments arguments;
  arguments.learning_rate = 0.01f / static_cast<float>(1 + step % 3);
  arguments.t = step + 1;
  arguments.divide_by(all);
  return arguments;
}

void Books::advance(State& state, int replicas) const {
  compute::LossSums all;
  for (int replica = 0; replica < replicas; ++replica)
    all += sums(state.position, replicas, replica);
  const auto sum = gradient(state.position, replicas, {0, replicas}, state.buffers[0]);
  optimizer_->apply({0, sum.size()}, arguments(state.position.step, all), state.buffers[0], sum,
                    state.slots());
  state.position.sums.add(state.position.epoch, all);
  workload(replicas).advance(state.position);
}

const Books::Moment& Books::moment(const std::string& who, Key key) const {
  const auto found = moments_.find(key);
  if (found == moments_.end())
    throw Violation(who + ": nobody has come to step " + std::to_string(key.second) +
                    " in generation " + std::to_string(key.first));
  return found->second;
}

void Books::compare(const std::string& who, const State& expected, const State& found) {
  if (same(expected, found)) return;
  throw Violation(who + ": expected " + text(expected) + ", found " + text(found) +
                  ", or they differ elsewhere");
}

void Books::entered(const std::string& who, uint64_t generation, int replicas, const State& state,
                    bool kept, std::optional<uint64_t> checkpoint) {
  const uint64_t step = state.position.step;
  if (const auto known = replicas_.find(generation); known != replicas_.end()) {
    if (known->second != replicas)
      throw Violation(who + " has another number of replicas than others of the generation");
    return compare(who + " begins", moment(who, {generation, step}).state, state);
  }
  replicas_[generation] = replicas;
  Moment first{state, {}};
  if (checkpoint) {
    first.trained = moment(who, {*checkpoint, step}).trained;
    compare(who + " restores", moment(who, {*checkpoint, step}).state, state);
  } else if (!kept) {
    compare(who + " initializes", initial(), state);
  } else {
    const auto found = std::find_if(moments_.rbegin(), moments_.rend(), [&](const auto& entry) {
      return entry.first.first < generation && same(entry.second.state, state);
    });
    if (found == moments_.rend())
      throw Violation(who + " goes on with what no generation has come to: " + text(state));
    first.trained = found->second.trained;
  }
  moments_[{generation, step}] = std::move(first);
}

void Books::stepped(const std::string& who, uint64_t generation, const State& state) {
  const Key key{generation, state.position.step};
  if (!moments_.contains(key)) {
    const Moment& before = moment(who, {generation, key.second - 1});
    Moment now = before;
    const int replicas = replicas_.at(generation);
    const checkpoint::Position& position = before.state.position;
    for (uint64_t batch = position.next_batch;
         batch < std::min<uint64_t>(position.next_batch + static_cast<uint64_t>(replicas),
                                    static_cast<uint64_t>(setting_.batches));
         ++batch)
      now.trained.emplace_back(position.epoch, batch);
    advance(now.state, replicas);
    moments_[key] = std::move(now);
  }
  check(who, generation, state);
}

void Books::check(const std::string& who, uint64_t generation, const State& state) const {
  compare(who + " in generation " + std::to_string(generation),
          moment(who, {generation, state.position.step}).state, state);
}

void Books::check_folder(const SimulatedStorage::Folder& folder) const {
  const SimulatedStorage::File& file = folder.files.at(0);
  State state{folder.position, {file.parameters}};
  state.buffers.insert(state.buffers.end(), file.slots.begin(), file.slots.end());
  check(SimulatedStorage::name_of(folder), folder.generation, state);
}

void Books::check_final(const SimulatedStorage::Folder& final) const {
  check_folder(final);
  if (final.position.epoch != kEpochs)
    throw Violation("the job ended in epoch " + std::to_string(final.position.epoch));
  std::vector<std::pair<uint64_t, uint64_t>> all;
  for (uint64_t epoch = 0; epoch < kEpochs; ++epoch)
    for (uint64_t batch = 0; batch < static_cast<uint64_t>(setting_.batches); ++batch)
      all.emplace_back(epoch, batch);
  if (moment("the end", {final.generation, final.position.step}).trained != all)
    throw Violation("not every batch was trained on once");
  if (setting_.elastic() && setting_.replicas == 0) return;
  State undisturbed = initial();
  while (undisturbed.position.epoch < kEpochs)
    advance(undisturbed, setting_.elastic() ? setting_.replicas : setting_.members);
  State found{final.position, {final.files.at(0).parameters}};
  found.buffers.insert(found.buffers.end(), final.files.at(0).slots.begin(),
                       final.files.at(0).slots.end());
  compare("the end", undisturbed, found);
}

}  // namespace muster::collective::protocol
