#include "trainer/loop/synchronizers/local_synchronizer.h"

#include <algorithm>
#include <array>
#include <deque>
#include <future>

#include "common/error.h"
#include "common/program/log.h"
#include "common/program/stopwatch.h"
#include "common/threads/watched_work.h"
#include "trainer/checkpoint/start/begin_state.h"
#include "trainer/loop/synchronizers/state_snapshot.h"

namespace muster::loop {

namespace {

// Returns the range that each device's thread updates.
std::vector<compute::Range> shares_of(const Assembly& assembly) {
  const auto devices = static_cast<int>(assembly.devices().size());
  const compute::ParameterLayout& layout = assembly.engine->layout();
  if (assembly.optimizer->needs_whole_tensors())
    return compute::shard_ranges(assembly.spec().optimizer, layout, devices);
  const auto size = static_cast<int64_t>(layout.size());
  constexpr auto kGrain = static_cast<int64_t>(compute::ParameterLayout::kAlignment);
  std::vector<compute::Range> shares;
  for (int device = 0; device < devices; ++device) {
    const host::TeamThread member{device, devices};
    shares.push_back({static_cast<size_t>(member.begin(size, kGrain)),
                      static_cast<size_t>(member.end(size, kGrain))});
  }
  return shares;
}

}  // namespace

LocalSynchronizer::Host::Host(const Assembly& assembly)
    : parameters(assembly.engine->layout().size()),
      sum(parameters.size()),
      gradients(assembly.devices(), /*exclusive=*/true, assembly.spec().rounded()),
      arithmetic(assembly.spec().rounded()),
      sums(static_cast<size_t>(gradients.devices())),
      parts(sums.size()),
      shares(shares_of(assembly)) {
  gradients.pin(std::array<std::span<float>, 2>{parameters.floats().host(), sum});
}

LocalSynchronizer::LocalSynchronizer(Assembly& assembly, const checkpoint::Store::Found* from,
                                     uint64_t generation)
    : assembly_(assembly), generation_(generation) {
  const spec::TrainingSpec& spec = assembly.spec();
  group_ = make_group();
  if (!group_ &&
      (spec.gradient_accumulation > 1 || assembly.devices().size() > 1 || spec.rounded()))
    host_.emplace(assembly);
  make_slots();
  begin_state(from);
  const size_t floats = assembly.engine->layout().size();
  if (spec.saves_on_the_way())
    assembly_.copies.assign(1 + slot_views_.size(), compute::Floats(floats));
  if (host_) host_->gradients.load(host_->parameters.floats().host());
}

LocalSynchronizer::~LocalSynchronizer() {
  try {
    for (; begun_ > 0; --begun_) assembly_.engine->end_training();
  } catch (const std::exception&) {
    // A failed device does not use the slots any more, and errors of the feed do not matter now.
  }
}

std::optional<LocalSynchronizer::Group> LocalSynchronizer::make_group() const {
  const spec::TrainingSpec& spec = assembly_.spec();
  const std::vector<FedEngine> devices = assembly_.devices();
  if (devices.size() < 2 || !spec.why_unlinked().empty()) return std::nullopt;
  auto group = compute::EngineGroup::create(assembly_.engines(), *assembly_.optimizer);
  if (!group) return std::nullopt;
  const auto count = static_cast<int>(devices.size());
  try {
    auto link = group->link({.count = count, .id = group->make_link_id()});
    return Group{std::move(group), std::move(link),
                 std::make_unique<ReplicaGradients>(devices, /*exclusive=*/true),
                 std::vector<compute::LossSums>(static_cast<size_t>(count))};
  } catch (const Unavailable& error) {
    log::warning(
        std::string("the devices exchange gradients through the host's memory, which takes "
                    "longer: ") +
        error.what());
    return std::nullopt;
  }
}

void LocalSynchronizer::make_slots() {
  if (group_) {
    slot_views_.assign(group_->engines->slots().begin(), group_->engines->slots().end());
  } else {
    for (size_t i = 0; i < assembly_.optimizer->slot_names().size(); ++i) {
      if (host_)
        slots_.push_back(std::make_unique<compute::HostMemory>(host_->parameters.size()));
      else
        slots_.push_back(assembly_.engine->allocate());
      slot_views_.push_back(slots_.back().get());
    }
  }
}

compute::Memory& LocalSynchronizer::parameters() {
  if (group_) return group_->engines->parameters();
  return host_ ? host_->parameters : assembly_.engine->parameters();
}

void LocalSynchronizer::begin_state(const checkpoint::Store::Found* from) {
  compute::HostView weights(parameters());
  std::deque<compute::HostView> views;
  std::vector<std::span<float>> slots;
  for (compute::Memory* const slot : slot_views_)
    slots.push_back(views.emplace_back(*slot).values());
  checkpoint::begin_state(from, assembly_.spec(), *assembly_.optimizer,
                          {0, assembly_.engine->layout().size()}, weights.values(), slots);
  weights.store();
  for (compute::HostView& view : views) view.store();
  if (from) mutable_position() = from->manifest.position;
}

void LocalSynchronizer::read_weights(std::span<float> to) {
  parameters().read({0, to.size()}, to).wait();
  const auto slot = assembly_.optimizer->average_slot();
  if (!slot) return;
  const compute::Range trained = assembly_.engine->layout().segment(compute::Segment::trainable);
  slot_views_[*slot]->read(trained, to.subspan(trained.begin, trained.size())).wait();
}

Synchronizer::StepResult LocalSynchronizer::step() {
  const WatchedWork watched(WatchedWork::Kind::computing, "taking a step");
  if (!group_ && !host_ && assembly_.engine->trains_ahead(*assembly_.optimizer))
    return step_ahead();
  const Work work = assembly_.workload->part_of(position(), 0);
  const compute::UpdateArguments arguments = arguments_at(position());
  StepResult result;
  if (group_)
    result = step_on_devices(arguments);
  else if (host_)
    result = step_on_host(arguments);
  else
    result.sums = assembly_.engine->train(assembly_.feed->batch(work), *assembly_.optimizer,
                                          arguments, slot_views_);
  mutable_position().sums.add(work.epoch(), result.sums);
  assembly_.workload->advance(mutable_position());
  return result;
}

compute::UpdateArguments LocalSynchronizer::arguments_at(
    const checkpoint::Position& position) const {
  compute::UpdateArguments arguments;
  arguments.learning_rate = static_cast<float>(assembly_.spec().schedule.at(position.step));
  arguments.t = position.optimizer_t + 1;
  return arguments;
}

void LocalSynchronizer::begin_step() {
  const Work work = assembly_.workload->part_of(next_, 0);
  assembly_.engine->begin_training(assembly_.feed->batch(work), *assembly_.optimizer,
                                   arguments_at(next_), slot_views_);
  assembly_.workload->advance(next_);
  ++begun_;
}

// A run of steps ends where the training loop may need the state. A checkpoint that is due by time
// or requested waits for the end of the run.
uint64_t LocalSynchronizer::end_of_run() const {
  constexpr uint64_t kMost = 16;
  const auto& every = assembly_.spec().checkpoint.every_steps;
  const Workload& workload = *assembly_.workload;
  const uint64_t step = position().step;
  uint64_t end = std::min(step + kMost, workload.total_steps(position()));
  end = std::min(end, step + workload.batches_per_epoch() - position().next_batch);
  return every ? std::min(end, (step / *every + 1) * *every) : end;
}

Synchronizer::StepResult LocalSynchronizer::step_ahead() {
  if (begun_ == 0) {
    next_ = position();
    run_end_ = end_of_run();
    begin_step();
  }
  if (next_.step < run_end_ && !stop_.stop_requested()) begin_step();
  --begun_;
  StepResult result;
  result.sums = assembly_.engine->end_training();
  mutable_position().sums.add(position().epoch, result.sums);
  assembly_.workload->advance(mutable_position());
  return result;
}

Synchronizer::StepResult LocalSynchronizer::step_on_devices(compute::UpdateArguments arguments) {
  group_->gradients->compute_on_devices(
      0, [&](const Turn& turn) { return assembly_.workload->part_of(position(), turn); },
      group_->sums);
  StepResult result;
  for (const compute::LossSums& sums : group_->sums) result.sums += sums;
  arguments.divide_by(result.sums);
  group_->gradients->each([&](int device) {
    group_->link->ask_sums(device);
    group_->link->await_sums(device);
  });
  const Stopwatch updating;
  group_->gradients->each([&](int device) { group_->link->update(device, arguments); });
  result.costs.update_seconds = updating.seconds();
  return result;
}

Synchronizer::StepResult LocalSynchronizer::step_on_host(compute::UpdateArguments arguments) {
  const ReplicaGradients::Target all_devices{{0, host_->gradients.devices()}, host_->sum};
  host_->gradients.compute(
      {&all_devices, 1},
      [this](const Turn& turn) { return assembly_.workload->part_of(position(), turn); },
      host_->sums);
  StepResult result;
  for (const compute::LossSums& sums : host_->sums) result.sums += sums;
  arguments.divide_by(result.sums);
  const Stopwatch updating;
  update_on_host(arguments);
  result.costs.update_seconds = updating.seconds();
  host_->gradients.load(host_->parameters.floats().host());
  return result;
}

// Each device's thread has its share of the parameters.
void LocalSynchronizer::update_on_host(const compute::UpdateArguments& arguments) {
  const std::span<float> parameters = host_->parameters.floats().host();
  host_->gradients.each([&](int device) {
    const compute::Range range = host_->shares[static_cast<size_t>(device)];
    auto& slots = host_->parts[static_cast<size_t>(device)];
    slots.resize(slots_.size());
    for (size_t i = 0; i < slots.size(); ++i)
      slots[i] = slots_[i]->floats().host().subspan(range.begin, range.size());
    const std::span<float> sum = std::span(host_->sum).subspan(range.begin, range.size());
    host_->arithmetic.read(sum.data(), sum);
    assembly_.optimizer->apply(range, arguments, parameters.subspan(range.begin, range.size()), sum,
                               slots);
  });
}

// A separate thread copies each buffer, because one thread cannot use the whole bandwidth of the
// memory.
std::unique_ptr<Snapshot> LocalSynchronizer::snapshot() {
  const auto copy = [](const compute::Memory& from, compute::Floats& to) {
    to.resize(from.size());
    from.read({0, from.size()}, to).wait();
  };
  assembly_.copies.resize(1 + slot_views_.size());
  std::vector<std::future<void>> copying;
  for (size_t i = 0; i < slot_views_.size(); ++i)
    copying.push_back(
        std::async(copy, std::cref(*slot_views_[i]), std::ref(assembly_.copies[1 + i])));
  copy(parameters(), assembly_.copies[0]);
  for (auto& one : copying) one.get();
  const compute::ParameterLayout& layout = assembly_.engine->layout();
  return std::make_unique<StateSnapshot>(layout, assembly_.optimizer->slot_names(),
                                         assembly_.copies, position());
}

}  // namespace muster::loop
