#pragma once

#include <map>
#include <string>

#include "common/threads/mutex.h"
#include "operator/api/training_job.h"

namespace muster::kube {

// Counts our jobs by state (api/overview.h). Thread-safe.
class JobStates {
 public:
  void note(const std::string& job_uid, const api::JobStatus& status);
  void forget(const std::string& job_uid);
  // Returns the counts. A state that no job has any more stays in the map, with 0.
  std::map<std::string, int> counts();
  // Whether the job is known to have the condition Finished.
  bool is_finished(const std::string& job_uid) const;

 private:
  struct State {
    std::string word;
    bool finished = false;
  };
  mutable Mutex mutex_;
  std::map<std::string, State> states_ MUSTER_GUARDED_BY(mutex_);  // by UID of the job
  std::map<std::string, int> counts_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::kube
