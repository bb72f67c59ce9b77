#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/job/time_use.h"
#include "operator/api/training_job.h"

namespace muster::plan {

// The job's leading replica says this of its own time in an answer of /progress.
struct ProcessLedger {
  std::string process;  // a name that no other process has
  TimeUse use = TimeUse::unknown;
  TimeSpent spent;                   // since the process began
  int64_t step = 0, first_step = 0;  // of the job: now, and when the process began to train
  std::optional<TimeUse> stalled;    // hanging or storage, if work stands still
  double age = 0;                    // seconds since the answer
  bool final = false;                // the process has ended after this answer
  bool operator==(const ProcessLedger&) const = default;

  // Whether it counts; otherwise it is too old, and the process is silent.
  bool counts() const;
  // Returns nothing if the answer has no ledger, as that of a user's own image.
  static std::optional<ProcessLedger> of(const Json& answer);
};

// Returns the use in a ledger's JSON: status.goodput, or what a process tells of itself; unknown if
// it has none.
TimeUse use_in(const Json& ledger);

// Counts what each second of a job was spent on, from its creation on. The time between two calls
// of advance() is split by what the leading replica's process says of it; what is left is spent as
// the earlier call said. So the sum is the time since the creation, whatever was killed in between.
class JobLedger {
 public:
  JobLedger() = default;
  // Continues status.goodput. What was until the next advance() is not known: if the process that
  // told last lives on, its next answer says what that time was spent on. Otherwise another
  // operator has looked at the job for `looked` seconds more, in which nothing changed that would
  // have made it write the status: they go on as the status says.
  explicit JobLedger(const Json& goodput, double looked = 0);

  // `elapsed` seconds have passed since the last call or, before the first, since the job's
  // creation. `use` is what the job's time is spent on from now on as the cluster sees it, for as
  // long as no process of the leading replica tells more.
  void advance(double elapsed, TimeUse use, const std::optional<ProcessLedger>& leader);

  const TimeSpent& spent() const { return spent_; }
  // Returns the same, if the job goes on as it does now for so many seconds more.
  TimeSpent spent_after(double elapsed) const;
  TimeUse use() const { return use_; }
  // Returns status.goodput. `now` is written as the time until which everything is counted.
  Json json(api::Time now) const;

 private:
  bool awaits_answer(double elapsed);
  void charge(TimeUse use, double seconds);
  void take(TimeUse use, const ProcessLedger& leader);
  TimeSpent judged(TimeSpent fresh, TimeUse use, const ProcessLedger& leader);

  TimeSpent spent_;
  TimeUse use_ = TimeUse::starting;
  double pending_ = 0;  // seconds that are not in spent_ yet
  // So many of the seconds in which this operator did not look had the use that the status says,
  // because another operator looked.
  double looked_ = 0;
  TimeUse use_in_status_ = TimeUse::unknown;
  // While an answer is awaited after another operator: for how many seconds.
  std::optional<double> awaited_;
  std::string process_;
  TimeSpent of_process_;  // what process_ had told in its last answer
  int64_t step_ = 0;      // of the last answer
  int64_t highest_step_ = 0;
};

// Returns until when the status has counted the job's time: the job's creation at first.
std::optional<api::Time> counted_until(const api::TrainingJob& job);

// Returns the share of the time in which the job was to run (all but queued and suspended) that
// went into steps that count; nothing before the first second.
std::optional<double> share_of_steps(const TimeSpent& spent);

}  // namespace muster::plan
