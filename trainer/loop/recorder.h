#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "common/document.h"
#include "trainer/compute/engine.h"
#include "trainer/loop/workload.h"
#include "trainer/metrics/progress.h"
#include "trainer/summary/event_writer.h"

namespace muster::loop {

// What training tells the world while it runs: log lines every few seconds, TensorBoard points,
// /progress. A step costs it a few additions; the rest happens a few times a second.
class Recorder {
 public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    uint64_t summary_every_steps = 100;
    bool classification = true;
    const compute::Schedule* schedule = nullptr;
    bool quiet = false;  // no log lines: rank 0 says the same
  };

  // `events` may be null: nothing is written then.
  Recorder(Options options, metrics::Reporter& reporter,
           std::unique_ptr<summary::EventWriter> events);

  // Goes on where an earlier process stopped; `state` is what that one's state() gave.
  void restore(const Json& state);
  // Where losses and times stand at `step`; kept, so that a group that is put back to this step
  // goes on from them.
  Json state(uint64_t step);

  void begin(const checkpoint::Position& position, uint64_t total_steps, uint64_t generation);
  // After each committed step; `position` is after it, `sums` are the group's.
  void step(const checkpoint::Position& position, const compute::LossSums& sums,
            Clock::time_point now);
  // Says what is left to say and stops the time.
  void end(const checkpoint::Position& position);

  void checkpoint_published(uint64_t step, double seconds);  // thread-safe
  void checkpoint_failed();                                  // thread-safe
  void set_state(const std::string& state);
  void scalar(const std::string& tag, uint64_t step, double value);
  void flush();

  double train_seconds() const;        // of all processes so far
  double epoch_loss() const;           // mean of the last whole epoch, else of this one so far
  double examples_per_second() const;  // of this process
  double steps_per_second() const;

 private:
  Json state() const;
  void rewind(uint64_t step);
  void publish();
  void report(const checkpoint::Position& position, Clock::time_point now);
  void log_line(const checkpoint::Position& position, Clock::time_point now);
  void write_points(const checkpoint::Position& position, Clock::time_point now);
  void end_epoch(uint64_t epoch, uint64_t step);

  const Options options_;
  metrics::Reporter& reporter_;
  std::unique_ptr<summary::EventWriter> events_;
  metrics::Progress progress_;

  // A stretch of steps and when it began.
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
  metrics::Durations durations_;  // of steps, since the last update of progress
  compute::LossSums epoch_;
  compute::LossSums last_epoch_;
  uint64_t step_ = 0;
  std::map<uint64_t, Json> saved_;  // by step, of the newest checkpoints
  uint64_t epoch_number_ = 0;
  double earlier_seconds_ = 0;
  double started_at_ = 0;  // Unix time of the first process
  std::atomic<uint64_t> checkpoint_step_{0};
  std::atomic<double> checkpoint_time_{0};
  Clock::time_point last_;
};

}  // namespace muster::loop
