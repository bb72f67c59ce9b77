#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/documents/document.h"
#include "trainer/metrics/durations.h"
#include "trainer/metrics/progress.h"

namespace muster::metrics {

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
  void count(const std::string& name, double amount = 1,  // amount >= 0
             const std::map<std::string, std::string>& labels = {});
  void gauge(const std::string& name, double value,
             const std::map<std::string, std::string>& labels = {});
  // Add to a histogram with the buckets of Durations.
  void observe(const std::string& name, double seconds);
  void observe(const std::string& name, const Durations& durations,
               const std::map<std::string, std::string>& labels = {});
  // Adds to a histogram that is not of times: `counts` by bucket, with one more for all above the
  // last of `bounds`, and the sum of all that is counted. No ending is added to the name.
  void observe(const std::string& name, std::span<const double> bounds,
               const std::vector<double>& counts, double sum);

  // Returns the answer of /metrics.
  std::string metrics_text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::metrics
