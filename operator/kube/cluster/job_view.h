#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "operator/api/training_job.h"

namespace muster::kube {

// Metrics say this of one job.
struct JobView {
  struct Replicas {
    int wanted = 0;  // those that have not ended for good
    int ready = 0;   // those of them that are ready
    int restarts = 0;
    std::map<std::string, int> restarts_by_reason = {};
    bool operator==(const Replicas&) const = default;
  };
  std::string name_space, name;
  std::string state;  // api::state_word()
  // Why a job that wants to train does not, as one CamelCase word, and since when: the reason of
  // its queue or its refusal, NotChecked, QuotaExceeded, StorageHangs, ReplicaHangs, or what the
  // cluster says of the first replica that is not ready, such as Unschedulable or ImagePullBackOff.
  // It is Starting, Restarting or Recovering if nothing more is known, and empty if the job trains,
  // has ended, or was suspended by its user.
  std::string cause;
  api::Time waits_since{};
  std::map<api::Role, Replicas> replicas;
  std::optional<int64_t> step;  // of status.progress; a job that is no training of ours has none
  std::optional<double> eta;    // seconds until its last step, of status.progress
  std::optional<api::Time> deadline;  // when runPolicy.activeDeadlineSeconds has passed
  // A job that has finished has the reason of its end, and the exit code of the replica that has
  // ended it, if one has.
  std::string end_reason;
  std::optional<int> exit_code;
};

// Pure. `created` is when the job was made.
JobView view_of(const std::string& name_space, const std::string& name, api::Time created,
                const api::JobStatus& status);

}  // namespace muster::kube
