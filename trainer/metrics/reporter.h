#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/documents/document.h"
#include "trainer/metrics/progress.h"

namespace muster::metrics {

// A histogram of times in seconds, for Reporter::observe; counting costs almost nothing. Not
// thread-safe.
class Durations {
 public:
  // The upper ends of the buckets, the same for every histogram: from 10 us to 5 minutes. A last
  // bucket has all longer times.
  static constexpr std::array<double, 16> kBounds = {
      1e-5, 3e-5, 1e-4, 3e-4, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300};

  void add(double seconds) {
    size_t bucket = 0;
    while (bucket < kBounds.size() && seconds > kBounds[bucket]) ++bucket;
    ++counts_[bucket];
    sum_ += seconds;
  }
  const std::array<uint64_t, kBounds.size() + 1>& counts() const { return counts_; }
  double sum() const { return sum_; }

 private:
  std::array<uint64_t, kBounds.size() + 1> counts_{};
  double sum_ = 0;
};

// Serves /metrics (Prometheus), /healthz and /progress of one replica on `address` ("host:port"; if
// it is empty, nothing is served and everything else works). Names and meanings:
// docs/reference/metrics.md. Updates are cheap and thread-safe; the training loop calls update() at
// most a few times a second. /progress and /metrics also tell the ledger of the thread that makes
// the Reporter (common/program/time_ledger.h), which must outlive it.
class Reporter {
 public:
  // `restarts` is the number of restarts in place in this container; /progress shows it beside the
  // fields of update(). Throws Unavailable, naming the address, if it cannot be bound.
  Reporter(const std::string& address, std::string role, int index, int restarts = 0);
  ~Reporter();
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

  void update(const Progress& progress);
  // Sets `resumed` of /progress: a sentence that says which checkpoint training resumes from, if
  // the user may not expect it.
  void resumed(const std::string& sentence);
  // Sets `requestedCheckpoint` of /progress: the newest request for a checkpoint that has been met,
  // and the step and the folder of a checkpoint that was taken after it.
  void met_request(const std::string& request, uint64_t step, const std::string& folder);
  Progress snapshot() const;
  // Adds to each answer of /progress the members of the object that `more` returns; an empty `more`
  // adds nothing. Replaces the function of an earlier call with the same `who`; that function is
  // not called any more once this call has returned.
  void also_say(const std::string& who, std::function<Json()> more);
  // `measure` is called before each answer of /metrics, by one thread at a time.
  void measure_first(std::function<void()> measure);

  // Counters, histograms and states of names.h exist from the start, at 0. These functions update a
  // counter or gauge "muster_trainer_<name>". The unit's ending is added if the name does
  // not have it: counters end in _total, histograms in _seconds. Any character except letters,
  // digits and _ becomes _.
  void count(const std::string& name, double amount = 1);  // amount >= 0
  void gauge(const std::string& name, double value,
             const std::map<std::string, std::string>& labels = {});
  // Add to a histogram with the buckets of Durations.
  void observe(const std::string& name, double seconds);
  void observe(const std::string& name, const Durations& durations);

  // Returns the answer of /metrics.
  std::string metrics_text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::metrics
