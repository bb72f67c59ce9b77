#include "trainer/loop/local_synchronizer.h"

#include <future>

#include "trainer/loop/state_snapshot.h"
#include "trainer/ps/initial_parameters.h"

namespace muster::loop {

LocalSynchronizer::LocalSynchronizer(Assembly& assembly, const checkpoint::Store::Found* from,
                                     uint64_t generation)
    : assembly_(assembly),
      gradients_(assembly.devices(), /*exclusive=*/true, assembly.spec().rounded()),
      arithmetic_(assembly.spec().rounded()),
      sums_(static_cast<size_t>(gradients_.devices())),
      parts_(sums_.size()),
      generation_(generation) {
  const compute::ParameterLayout& layout = assembly.engine->layout();
  const compute::Range whole{0, layout.size()};
  const auto& names = assembly.optimizer->slot_names();
  slots_.assign(names.size(), compute::Floats(layout.size(), 0.0f));
  slot_views_.assign(slots_.begin(), slots_.end());
  if (assembly.spec().saves_on_the_way())
    assembly_.copies.assign(1 + names.size(), compute::Floats(layout.size()));
  if (!from) {
    ps::fill_initial_parameters(assembly.spec(), layout, assembly.engine->parameters());
    return;
  }
  checkpoint::Store::load(*from, layout, whole, assembly.engine->parameters(), "");
  for (size_t i = 0; i < names.size(); ++i)
    checkpoint::Store::load(*from, layout, whole, slots_[i], names[i] + "/");
  position_ = from->manifest.position;
}

std::optional<Work> LocalSynchronizer::next() {
  if (assembly_.workload->finished(position_)) return std::nullopt;
  return assembly_.workload->part_of(position_, 0);
}

Synchronizer::StepResult LocalSynchronizer::step(const Work& work, Feed& feed, std::stop_token) {
  compute::UpdateArguments arguments;
  arguments.learning_rate = static_cast<float>(assembly_.spec().schedule.at(position_.step));
  arguments.t = position_.optimizer_t + 1;
  StepResult result;
  if (work.batches() == 1 && gradients_.devices() == 1 && !assembly_.spec().rounded()) {
    result.sums =
        assembly_.engine->train(feed.batch(work), *assembly_.optimizer, arguments, slot_views_);
  } else {
    result.sums = compute();
    arguments.inverse_rows = 1.0f / static_cast<float>(result.sums.rows);
    update(arguments);
  }
  position_.sums.add(work.epoch(), result.sums);
  assembly_.workload->advance(position_);
  return result;
}

compute::LossSums LocalSynchronizer::compute() {
  const std::span<float> parameters = assembly_.engine->parameters();
  const std::span<float> gradients = assembly_.engine->gradients();
  const ReplicaGradients::Target all_devices{{0, gradients_.devices()}, gradients};
  gradients_.compute(
      {&all_devices, 1},
      [this](const Turn& turn) { return assembly_.workload->part_of(position_, turn); }, parameters,
      sums_);
  compute::LossSums all;
  for (const compute::LossSums& sums : sums_) all += sums;
  return all;
}

// Each device's thread has its share of the parameters.
void LocalSynchronizer::update(const compute::UpdateArguments& arguments) {
  const std::span<float> parameters = assembly_.engine->parameters();
  const std::span<float> gradients = assembly_.engine->gradients();
  gradients_.each([&](int device) {
    const compute::cpu::Member member{device, gradients_.devices()};
    const auto size = static_cast<int64_t>(parameters.size());
    constexpr auto kGrain = static_cast<int64_t>(compute::ParameterLayout::kAlignment);
    const compute::Range range{static_cast<size_t>(member.begin(size, kGrain)),
                               static_cast<size_t>(member.end(size, kGrain))};
    auto& slots = parts_[static_cast<size_t>(device)];
    slots.resize(slot_views_.size());
    for (size_t i = 0; i < slots.size(); ++i)
      slots[i] = slot_views_[i].subspan(range.begin, range.size());
    const std::span<float> sum = gradients.subspan(range.begin, range.size());
    arithmetic_.read(sum.data(), sum);
    assembly_.optimizer->apply(range, arguments, parameters.subspan(range.begin, range.size()), sum,
                               slots);
  });
}

// A buffer's copy is the work of a thread of its own: one alone does not fill the memory's
// bandwidth.
std::unique_ptr<Snapshot> LocalSynchronizer::snapshot() {
  const auto copy = [](std::span<const float> from, compute::Floats& to) {
    to.assign(from.begin(), from.end());
  };
  assembly_.copies.resize(1 + slots_.size());
  std::vector<std::future<void>> copying;
  for (size_t i = 0; i < slots_.size(); ++i)
    copying.push_back(std::async(copy, slots_[i], std::ref(assembly_.copies[1 + i])));
  copy(assembly_.engine->parameters(), assembly_.copies[0]);
  for (auto& one : copying) one.get();
  const compute::ParameterLayout& layout = assembly_.engine->layout();
  return std::make_unique<StateSnapshot>(layout, assembly_.optimizer->slot_names(),
                                         assembly_.copies, position_);
}

}  // namespace muster::loop
