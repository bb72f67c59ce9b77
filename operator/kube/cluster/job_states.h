#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/threads/mutex.h"
#include "operator/api/training_job.h"
#include "operator/kube/cluster/job_view.h"

namespace muster::kube {

// Keeps what metrics say of our jobs. Thread-safe.
class JobStates {
 public:
  // How long, and of how many jobs, an end is shown.
  static constexpr std::chrono::hours kShowsEnds{1};
  static constexpr size_t kMostEnds = 1000;

  struct Job {
    std::string uid, name_space, name;
    api::Time created{};
    std::optional<int64_t> active_deadline_seconds = {};
  };
  void note(const Job& job, const api::JobStatus& status, api::Time now);
  void forget(const std::string& job_uid);

  // Returns the number of jobs by namespace and state (api/overview.h), for each namespace that has
  // jobs: 0 for states that no job has.
  std::map<std::string, std::map<std::string, int>> counts() const;
  // Returns all jobs that have not finished, and the newest of those that have.
  std::vector<std::shared_ptr<const JobView>> views(api::Time now);
  // Whether the job is known to have the condition Finished.
  bool is_finished(const std::string& job_uid) const;

 private:
  struct Namespace {
    std::map<std::string, int> by_state;
    int jobs = 0;
  };
  using Namespaces = std::map<std::string, Namespace>;
  // There may be very many finished jobs, so this is small for them.
  struct Known {
    Namespaces::iterator name_space;
    std::map<std::string, int>::iterator state;
    bool finished = false;
    std::shared_ptr<const JobView> view;  // null: not shown
  };
  static std::shared_ptr<const JobView> view_of_job(const Job& job, const api::JobStatus& status);
  void hide_old_ends(api::Time now) MUSTER_REQUIRES(mutex_);

  mutable Mutex mutex_;
  Namespaces namespaces_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::string, Known> jobs_ MUSTER_GUARDED_BY(mutex_);                 // by UID of the job
  std::multimap<api::Time, std::string> shown_ends_ MUSTER_GUARDED_BY(mutex_);  // UIDs
};

}  // namespace muster::kube
