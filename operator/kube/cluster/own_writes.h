#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "operator/kube/api/objects.h"

namespace muster::kube {

// Writes of ours to pods that the view does not show yet. With them it lags behind others, but
// never behind ourselves: nothing is created or removed twice because a watch is slow, and nobody
// looks again at a job whose pods did what we asked. Thread-safe. Has no clock: what a lost event
// would leave here for ever is let go after kPatience, when asking twice does no harm.
class OwnWrites {
 public:
  static constexpr std::chrono::seconds kPatience{60};

  // Before a pod is created, and after: it is shown until the view does so itself. In between it
  // may have come, and even gone.
  void creating(const std::string& key);
  void created(const Pod& pod, Time now);
  void not_created(const std::string& key);
  // Before the pod with this UID is asked to leave; and that it could not be asked.
  void removed(const std::string& uid, Time now);
  void not_removed(const std::string& uid);

  // A change of the view. False: there is nothing in it that we did not know.
  bool is_news(const Pod* before, const Pod* after);

  // What is in view of one job's pods, with what we know of it.
  std::vector<Pod> complete(std::vector<Pod> in_view, const std::string& job_uid, Time now);

 private:
  struct Creation {
    std::optional<Pod> pod;  // nothing: not answered yet
    bool shown = false;      // by the view
    Time at{};
  };
  bool is_known_creation(const Pod& pod);
  bool is_known_change(const Pod& before, const Pod& after);

  void let_go_lost(Time now);

  std::mutex mutex_;
  Time looked_{};                              // when for those whose events were lost
  std::map<std::string, Creation> creations_;  // by key
  std::map<std::string, Time> removals_;       // by UID
};

}  // namespace muster::kube
