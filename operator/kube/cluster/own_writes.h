#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/threads/mutex.h"
#include "operator/kube/api/objects.h"

namespace muster::kube {

// Our own writes to pods that the view does not show yet. Completed with them, the view may lag
// behind other writers but never behind this process: a slow watch does not make us create or
// remove a pod twice, and a job is not looked at again because its pods did what we asked.
// Thread-safe, without a clock. An entry whose event was lost is dropped after kPatience; by then a
// repeated request does no harm.
class OwnWrites {
 public:
  static constexpr std::chrono::seconds kPatience{60};

  // Called before a pod is created and after it is created. After created(), complete() adds the
  // pod until it is in view. Between the two calls the pod may have come into view and may even
  // have gone.
  void creating(const std::string& key);
  void created(const Pod& pod, Time now);
  void not_created(const std::string& key);
  // removed() is called before the pod with this UID is asked to leave; not_removed() if the
  // request failed.
  void removed(const std::string& uid, Time now);
  void not_removed(const std::string& uid);

  // Whether a change of the view contains anything that we did not know.
  bool is_news(const Pod* before, const Pod* after);

  // Returns the pods of one job that are in view, completed with our own writes.
  std::vector<Pod> complete(std::vector<Pod> in_view, const std::string& job_uid, Time now);

 private:
  struct Creation {
    std::optional<Pod> pod;  // nothing: the creation is not answered yet
    bool shown = false;      // whether the view has shown it
    Time at{};
  };
  bool is_known_creation(const Pod& pod) MUSTER_REQUIRES(mutex_);
  void forget_creation(const Pod& gone) MUSTER_REQUIRES(mutex_);
  bool is_known_change(const Pod& before, const Pod& after) MUSTER_REQUIRES(mutex_);

  void let_go_lost(Time now) MUSTER_REQUIRES(mutex_);

  Mutex mutex_;
  Time looked_ MUSTER_GUARDED_BY(mutex_){};  // last look for entries whose events were lost
  std::map<std::string, Creation> creations_ MUSTER_GUARDED_BY(mutex_);  // by key
  std::map<std::string, Time> removals_ MUSTER_GUARDED_BY(mutex_);       // by UID
};

}  // namespace muster::kube
