#include "trainer/loop/training_loop.h"

#include <fmt/format.h>

#include <cmath>

#include "common/error.h"
#include "common/exit_code.h"

namespace muster::loop {

namespace {

void require_finite(const compute::LossSums& sums, const checkpoint::Position& position) {
  if (std::isfinite(sums.loss)) return;
  throw Invalid(fmt::format("the loss is not finite ({}) at step {} (epoch {}): training has "
                            "diverged; the last good checkpoint is kept",
                            sums.loss, position.step, position.epoch),
                kDiverged);
}

}  // namespace

Ending train(Synchronizer& synchronizer, const Workload& workload, Feed& feed, Recorder& recorder,
             Checkpointer* checkpointer, std::stop_token stop) {
  const auto begin = [&] {
    if (!synchronizer.start(stop)) return false;
    const auto& position = synchronizer.position();
    recorder.begin(position, workload.total_steps(position), synchronizer.generation());
    if (checkpointer) checkpointer->begin(position.step, Recorder::Clock::now());
    return true;
  };
  if (!begin()) return Ending::interrupted;
  auto now = Recorder::Clock::now();
  while (const auto work = synchronizer.next()) {
    if (stop.stop_requested()) return Ending::interrupted;
    if (checkpointer && checkpointer->due(synchronizer.position().step, now))
      checkpointer->take(synchronizer, recorder.state(synchronizer.position().step));
    const auto result = synchronizer.step(*work, feed, stop);
    if (result.state == Synchronizer::State::interrupted) return Ending::interrupted;
    if (result.state == Synchronizer::State::rejoin) {
      if (!begin()) return Ending::interrupted;
      continue;
    }
    require_finite(result.sums, synchronizer.position());
    now = Recorder::Clock::now();
    recorder.step(synchronizer.position(), result.sums, now);
  }
  recorder.end(synchronizer.position());
  return Ending::finished;
}

}  // namespace muster::loop
