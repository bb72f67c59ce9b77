#include "tests/bench/collective/apart.h"

#include <chrono>
#include <span>
#include <vector>

#include "tests/bench/collective/twins.h"
#include "trainer/collective/shared_state.h"
#include "trainer/compute/initialize.h"
#include "trainer/loop/batches/replica_gradients.h"
#include "trainer/loop/training.h"

namespace muster::bench {

namespace {

using collective::SharedState;

// The state is laid out as a collective's, in memory of the same kind; the other member's part of
// it is not touched.
class Alone {
 public:
  Alone(loop::Assembly& assembly, int member)
      : assembly_(assembly),
        member_(member),
        state_(SharedState::make(shape_of(assembly), 1, 0)),
        gradients_({{*assembly.engine, *assembly.feed}}, false),
        slots_(state_->shape().slots) {
    compute::initialize_parameters(assembly.engine->layout(), assembly.spec().seed,
                                   state_->parameters());
    gradients_.load(state_->parameters());
  }
  ~Alone() { gradients_.release(); }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

  void step() {
    compute::LossSums sums;
    const loop::ReplicaGradients::Target target{{member_, member_ + 1}, own()};
    gradients_.compute(
        {&target, 1},
        [&](const loop::Turn& turn) { return assembly_.workload->part_of(position_, turn); },
        {&sums, 1});
    compute::UpdateArguments arguments;
    arguments.learning_rate = static_cast<float>(assembly_.spec().schedule.at(position_.step));
    arguments.t = position_.optimizer_t + 1;
    arguments.divide_by(sums);
    update(arguments);
    assembly_.workload->advance(position_);
  }

 private:
  static SharedState::Shape shape_of(const loop::Assembly& assembly) {
    SharedState::Shape shape;
    shape.members = shape.replicas = Meeting::kTwins;
    shape.floats = assembly.engine->layout().size();
    shape.slots = assembly.optimizer->slot_names().size();
    return shape;
  }

  std::span<float> own() { return state_->sum(static_cast<size_t>(member_)); }

  void update(const compute::UpdateArguments& arguments) {
    const SharedState::Shape& shape = state_->shape();
    for (size_t i = shape.first_tile(member_); i < shape.first_tile(member_ + 1); ++i) {
      const compute::Range range = shape.tile(i);
      for (size_t slot = 0; slot < slots_.size(); ++slot)
        slots_[slot] = state_->slot(slot).subspan(range.begin, range.size());
      assembly_.optimizer->apply(range, arguments,
                                 state_->parameters().subspan(range.begin, range.size()),
                                 own().subspan(range.begin, range.size()), slots_);
    }
  }

  loop::Assembly& assembly_;
  const int member_;
  const std::unique_ptr<SharedState> state_;
  loop::ReplicaGradients gradients_;
  std::vector<std::span<float>> slots_;  // of a tile
  checkpoint::Position position_;
};

double mean_seconds(Alone& alone, size_t steps, Meeting& meeting) {
  for (size_t i = 0; i < steps / 5; ++i) alone.step();
  meeting.barrier();
  const auto begin = std::chrono::steady_clock::now();
  for (size_t i = 0; i < steps; ++i) alone.step();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  return taken.count() / static_cast<double>(steps);
}

}  // namespace

double apart_seconds(const std::filesystem::path& training, size_t steps) {
  return in_twins([&](int twin, Meeting& meeting) {
    loop::Assembly assembly =
        loop::assemble(loop::Training::load(training), Meeting::kTwins, true, {1, false});
    Alone alone(assembly, twin);
    return meeting.mean(twin, mean_seconds(alone, steps, meeting));
  });
}

}  // namespace muster::bench
