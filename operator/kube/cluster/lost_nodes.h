#pragma once

#include <map>
#include <string>

#include "common/threads/mutex.h"
#include "operator/kube/api/client.h"
#include "operator/kube/api/objects.h"

namespace muster::kube {

// Asks the API server whether nodes answer, when there is reason to doubt it. Thread-safe.
class LostNodes {
 public:
  static constexpr std::chrono::seconds kKept{5};

  explicit LostNodes(const Client& client) : client_(client) {}

  // Whether a pod (for which is_suspect() of observe.h is true) is lost, because its node is gone
  // or does not answer. Without the permission to read nodes (a Role of one namespace) it returns
  // true if seems_lost() is true, or once the pod's grace period is over.
  bool has_lost(const Pod& pod, Time now);

 private:
  enum class Answer { lives, lost, unknown };
  Answer ask(const std::string& node) const;

  const Client& client_;
  Mutex mutex_;
  std::map<std::string, std::pair<Answer, Time>> answers_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::kube
