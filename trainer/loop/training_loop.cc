#include "trainer/loop/training_loop.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/time_ledger.h"
#include "common/threads/watched_work.h"
#include "trainer/loop/loss_text.h"

namespace muster::loop {

namespace {

[[noreturn]] void fail_diverged(double loss, const checkpoint::Position& position,
                                Checkpointer* checkpointer) {
  std::string kept;
  if (checkpointer) {
    const std::string newest = checkpointer->newest();
    kept = newest.empty() ? "; no checkpoint had been saved" : "; " + newest + " is kept";
  }
  throw Invalid(
      fmt::format("the loss is not finite ({}) at step {} (epoch {}): training has diverged{}",
                  loss_text(loss), position.step, position.epoch, kept),
      kDiverged);
}

}  // namespace

Ending train(Synchronizer& synchronizer, Assembly& assembly, Recorder& recorder,
             Checkpointer* checkpointer, Validator* validator, std::stop_token stop,
             StopRule* rule) {
  const Spending training(TimeUse::computing);
  const auto begin = [&] {
    const Spending joining(TimeUse::joining);
    if (!synchronizer.start(stop)) return false;
    const auto& position = synchronizer.position();
    recorder.begin(position, assembly.workload->total_steps(position), synchronizer.generation());
    if (checkpointer) checkpointer->begin(position, Recorder::Clock::now());
    if (rule) rule->begin(position);
    return true;
  };
  recorder.measure_input_wait([&assembly] { return assembly.input_wait_seconds(); });
  if (!begin()) return Ending::interrupted;
  auto now = Recorder::Clock::now();
  // Everything except waits for the group and, at the end, for storage.
  std::optional<WatchedWork> watched;
  for (;;) {
    if (!watched) watched.emplace(WatchedWork::Kind::computing, "training");
    const bool at_position = synchronizer.is_at_position();
    const bool savable = at_position && synchronizer.compared();
    if (validator && savable && validator->due(synchronizer.position())) {
      const Spending evaluating(TimeUse::evaluating);
      if (!validator->run(synchronizer, stop)) return Ending::interrupted;
      now = Recorder::Clock::now();
    }
    if (rule && at_position) rule->apply(synchronizer);
    if (!synchronizer.has_next()) break;
    if (at_position && stop.stop_requested()) return Ending::interrupted;
    if (checkpointer && savable && checkpointer->due(synchronizer.position(), now)) {
      const Spending saving(TimeUse::checkpoint);
      checkpointer->take(synchronizer, recorder.state(synchronizer.position()));
    }
    const auto result = synchronizer.step();
    if (result.state == Synchronizer::State::interrupted) return Ending::interrupted;
    if (result.state == Synchronizer::State::rejoin) {
      watched.reset();
      if (!begin()) return Ending::interrupted;
      continue;
    }
    if (!std::isfinite(result.sums.loss))
      fail_diverged(result.sums.loss, synchronizer.position(), checkpointer);
    now = Recorder::Clock::now();
    recorder.step(synchronizer.position(), result.sums, now, result.costs);
  }
  watched.reset();
  if (rule) rule->conclude(synchronizer);
  recorder.end(synchronizer.position());
  return Ending::finished;
}

}  // namespace muster::loop
