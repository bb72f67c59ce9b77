#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/documents/document.h"
#include "trainer/compute/loss.h"
#include "trainer/compute/schedule.h"
#include "trainer/loop/batches/workload.h"
#include "trainer/loop/evaluation/pictures.h"
#include "trainer/loop/synchronizers/synchronizer.h"
#include "trainer/metrics/reporter.h"
#include "trainer/metrics/step_parts.h"
#include "trainer/summary/event_writer.h"

namespace muster::loop {

// Reports a running training: log lines every few seconds and at an epoch's end, TensorBoard
// points, /progress. A loss's metrics are means: in a log line over the steps since the previous
// line, or over the epoch; in /progress over the steps since the previous report. A step costs a
// few additions; all other work happens a few times a second.
class Recorder {
 public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    uint64_t summary_every_steps = 100;
    compute::LossKind loss;
    const compute::Schedule* schedule = nullptr;
    bool quiet = false;  // no log lines, because rank 0 logs the same
  };

  // `events` may be null; no TensorBoard points are written then.
  Recorder(Options options, metrics::Reporter& reporter,
           std::unique_ptr<summary::EventWriter> events);

  // Returns more metrics for /progress and TensorBoard; called a few times a second.
  using Metrics = std::function<std::map<std::string, double>()>;
  void also_report(Metrics metrics) { more_metrics_ = std::move(metrics); }

  // Sets a function that is called after a committed step, at most a few times a second.
  void on_progress(std::function<void(Clock::time_point now)> trained) {
    trained_ = std::move(trained);
  }

  // Sets a function that returns the total time, in seconds, for which training has waited for its
  // input; called after each step.
  void measure_input_wait(std::function<double()> seconds) { input_wait_ = std::move(seconds); }

  // Continues the numbers of an earlier process; `state` is the result of that process's state().
  void restore(const Json& state);
  // Returns the content for a checkpoint at `position`: the metrics of the epoch so far, and the
  // numbers from which the next process continues.
  Json state(const checkpoint::Position& position) const;

  void begin(const checkpoint::Position& position, uint64_t total_steps, uint64_t generation);
  // Call this after each committed step. `position` is the position after the step, `sums` are the
  // sums of the group.
  void step(const checkpoint::Position& position, const compute::LossSums& sums,
            Clock::time_point now, const StepCosts& costs = {});
  // Reports an evaluation between two steps, at `position`; `validation` is the result of
  // Evaluation::json(). The time `took` does not count as training time.
  void validated(const checkpoint::Position& position, const Json& validation,
                 Clock::duration took);
  // Shows an evaluation of the weights of `step` in /progress and /metrics.
  void show_validation(uint64_t step, const Json& validation);
  // Reports everything that is not reported yet, and stops the clock.
  void end(const checkpoint::Position& position);

  void checkpoint_published(uint64_t step, double seconds);  // thread-safe
  void checkpoint_failed();                                  // thread-safe
  void set_state(const std::string& state);
  void scalar(const std::string& tag, uint64_t step, double value);
  // Returns the function that writes pictures of an evaluation at `step` for TensorBoard.
  ShowPicture shows_pictures(uint64_t step);
  void flush();

  // The numbers of this process and of the earlier processes of this training, as far as the
  // checkpoint that it resumed from has them. A rate is the work of these processes divided by
  // their training time; null if there is no training time.
  double train_seconds() const;
  Json examples_per_second() const;
  Json steps_per_second() const;

 private:
  void show_earlier(const checkpoint::Position& position);
  void show(const compute::LossSums& sums);
  std::vector<compute::Metric> metrics_of(const compute::LossSums& sums) const;
  void publish();
  void report(const checkpoint::Position& position, Clock::time_point now);
  TimeSpent take_input_wait();
  void log_line(const checkpoint::Position& position, Clock::time_point now);
  void write_points(const checkpoint::Position& position, Clock::time_point now);
  void end_epoch(const checkpoint::Position& position, Clock::time_point now, const char* when);

  const Options options_;
  metrics::Reporter& reporter_;
  std::unique_ptr<summary::EventWriter> events_;
  Metrics more_metrics_;
  std::function<double()> input_wait_;
  std::function<void(Clock::time_point now)> trained_;
  metrics::Progress progress_;

  // A run of consecutive steps and the time when it began.
  struct Window {
    compute::LossSums sums;
    uint64_t steps = 0;
    Clock::time_point begun;
    void reset(Clock::time_point now) { *this = {{}, 0, now}; }
    void add(const compute::LossSums& more) {
      sums += more;
      ++steps;
    }
  };
  Window all_;
  Window recent_;                 // since the last update of progress
  Window logged_;                 // since the last log line
  Window points_;                 // since the last TensorBoard point
  metrics::Durations durations_;  // durations of steps since the last update of progress
  metrics::StepParts parts_;
  // Since the last update of progress: seconds of waiting for input, and bytes exchanged.
  double unreported_wait_ = 0;
  uint64_t unreported_bytes_ = 0;
  // When, and at which step, this process began in the generation: the rate of the group's steps
  // counts from there.
  Clock::time_point begun_;
  uint64_t begun_step_ = 0;
  uint64_t epochs_told_ = 0;
  // The totals of earlier processes.
  struct Earlier {
    double seconds = 0;
    int64_t examples = 0;
    int64_t steps = 0;
  };
  Earlier earlier_;
  double started_at_ = 0;  // Unix time at which the first process started
  std::atomic<uint64_t> checkpoint_step_{0};
  std::atomic<double> checkpoint_time_{0};
  Clock::time_point last_;
};

}  // namespace muster::loop
