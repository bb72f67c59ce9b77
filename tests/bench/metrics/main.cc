// What all metrics together cost a step of a member of a group: its ledger, its clocks, the
// recorder with its reports, and a Prometheus that asks ten times a second. `bench_metrics` prints
// a line of JSON.

#include <atomic>
#include <cstdio>
#include <ctime>
#include <optional>
#include <thread>

#include "common/program/stopwatch.h"
#include "common/program/time_ledger.h"
#include "trainer/loop/recorder.h"

namespace muster::loop {
namespace {

constexpr uint64_t kSteps = 10'000'000;

// Does for one step what train() and CollectiveSynchronizer::step() do for metrics.
void take_step(TimeLedger& ledger, Recorder& recorder, checkpoint::Position& position,
               const compute::LossSums& sums) {
  const Stopwatch computing;
  const double computed = computing.seconds();
  std::optional<Spending> communicating(TimeUse::communication);
  const Stopwatch updating;
  const double update = updating.seconds();
  communicating.reset();
  ledger.move(TimeUse::communication, TimeUse::computing, update);
  ledger.move(TimeUse::communication, TimeUse::slowest, computed);
  ++position.step;
  recorder.step(position, sums, Recorder::Clock::now(), {update, 1000});
}

struct Seconds {
  double wall = 0;
  double cpu = 0;  // of the process
};

// Returns the seconds that a step takes.
Seconds per_step() {
  TimeLedger ledger;
  metrics::Reporter reporter("", "chief", 0);
  Recorder::Options options;
  options.summary_every_steps = kSteps;
  options.quiet = true;
  Recorder recorder(options, reporter, nullptr);
  std::atomic<int64_t> waited = 0;
  recorder.measure_input_wait([&] { return 1e-9 * static_cast<double>(waited.load()); });
  const std::jthread prometheus([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      reporter.metrics_text();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  checkpoint::Position position;
  compute::LossSums sums;
  sums.rows = 32;
  const Spending training(TimeUse::computing);
  recorder.begin(position, kSteps, 1);
  const std::clock_t cpu = std::clock();
  const Stopwatch all;
  for (uint64_t step = 0; step < kSteps; ++step) take_step(ledger, recorder, position, sums);
  recorder.end(position);
  const double used = static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
  return {all.seconds() / static_cast<double>(kSteps), used / static_cast<double>(kSteps)};
}

}  // namespace
}  // namespace muster::loop

int main() {
  const muster::loop::Seconds seconds = muster::loop::per_step();
  std::printf("{\"nanosecondsPerStep\": %.1f, \"cpuNanosecondsPerStep\": %.1f}\n",
              1e9 * seconds.wall, 1e9 * seconds.cpu);
  return 0;
}
