#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/documents/document.h"
#include "common/job/time_use.h"
#include "operator/api/training_job.h"

namespace muster::plan {

// Sums up what jobs have used.
struct Usage {
  TimeSpent spent;
  double gpu_seconds = 0;  // GPUs that the jobs want, times seconds neither queued nor suspended
  std::map<std::string, int64_t> ended;  // jobs that have ended, by state: Succeeded, Failed, ...

  // Counts the time of a job that wants so many GPUs.
  void charge(const TimeSpent& more, int gpus);
  Usage& operator+=(const Usage& more);
  // Returns what has come since `earlier`. A use may have less than then, if time that was counted
  // as this use has turned out to be another one.
  Usage since(const Usage& earlier) const;
  bool operator==(const Usage&) const = default;
};
using UsageByNamespace = std::map<std::string, Usage>;

// The state that counts a job that was deleted before its end.
inline constexpr const char* kDeleted = "Deleted";

// Returns the state that counts a job with this status, which says its end.
std::string end_state(const api::JobStatus& status);

// Returns the GPUs that all replicas of a job want together.
int gpus_of(const api::TrainingJob& job);

// Adds what the job has used from `since` to `until`, a time that no operator has written down: its
// seconds are of unknown use; but for those before `looked_until`, in which an operator has looked
// at a job that has not ended: they went on as its status says. Counts the job's end if that was
// within this time.
void count_gap(UsageByNamespace& usage, const api::TrainingJob& job, api::Time since,
               api::Time until, std::optional<api::Time> looked_until = {});

// Returns "2026-11".
std::string month_of(api::Time time);

// The sums by month and namespace, as a ConfigMap keeps them: the newest months, and a bounded
// number of namespaces in each.
class UsageTotals {
 public:
  static constexpr size_t kMostMonths = 13;
  static constexpr size_t kMostNamespaces = 80;  // then a ConfigMap of 1 MiB has room
  // The sum of all further namespaces. No namespace can have this name.
  static constexpr const char* kOther = "(other)";

  // Reads the data of a ConfigMap; null: none. Throws Invalid for what data() does not write; keys
  // that this version does not know are left out.
  static UsageTotals of(const Json& data);
  Json data() const;

  void add(const std::string& month, const UsageByNamespace& more);
  const std::map<std::string, UsageByNamespace>& months() const { return months_; }

  std::optional<api::Time> until;  // everything before this time is counted
  std::string write;               // a name of the last write that no other write has

 private:
  void carry_back(const std::string& month, const std::string& name_space);

  std::map<std::string, UsageByNamespace> months_;
};

}  // namespace muster::plan
