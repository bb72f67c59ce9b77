#include "trainer/loop/local_synchronizer.h"

#include <future>

#include "trainer/loop/state_snapshot.h"
#include "trainer/ps/initial_parameters.h"

namespace muster::loop {

LocalSynchronizer::LocalSynchronizer(Assembly& assembly, const checkpoint::Store::Found* from,
                                     uint64_t generation)
    : assembly_(assembly), gradients_(*assembly.engine), generation_(generation) {
  const compute::ParameterLayout& layout = assembly.engine->layout();
  const compute::Range whole{0, layout.size()};
  const auto& names = assembly.optimizer->slot_names();
  slots_.assign(names.size(), compute::Floats(layout.size(), 0.0f));
  slot_views_.assign(slots_.begin(), slots_.end());
  const spec::CheckpointSpec& when = assembly.spec().checkpoint;
  if (when.every_steps || when.every_seconds)
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
  compute::UpdateArguments update;
  update.learning_rate = static_cast<float>(assembly_.spec().schedule.at(position_.step));
  update.t = position_.optimizer_t + 1;
  StepResult result;
  if (work.batches == 1) {
    result.sums =
        assembly_.engine->train(feed.batch(work), *assembly_.optimizer, update, slot_views_);
  } else {
    result.sums = gradients_.compute(work, feed);
    update.inverse_rows = 1.0f / static_cast<float>(result.sums.rows);
    assembly_.optimizer->apply({0, assembly_.engine->layout().size()}, update,
                               assembly_.engine->parameters(), gradients_.values(), slot_views_);
  }
  position_.sums.add(work.epoch, result.sums);
  assembly_.workload->advance(position_);
  return result;
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
