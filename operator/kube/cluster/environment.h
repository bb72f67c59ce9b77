#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "operator/api/training_job.h"
#include "operator/kube/api/event_ledger.h"
#include "operator/kube/cluster/node_leases.h"
#include "operator/kube/cluster/progress_poller.h"

namespace muster::kube {

// A watcher is told what happens to jobs, to count it in metrics, for example. The threads that
// call KubeCluster call it.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void restarted(api::Role role, const std::string& reason, int times) = 0;
  virtual void took_first_step(std::chrono::milliseconds since_creation) = 0;
};

// A KubeCluster needs this of the outside.
struct Environment {
  std::function<api::Time()> now;
  // A job should be looked at, at the latest then. Thread-safe; may be called while KubeCluster is.
  std::function<void(const std::string& key, api::Time at)> wake;
  std::function<void(const EventSubject& subject, EventText text)> emit;
  // Whether this process may write. Asked before each call that does (leader_transport.h).
  // Thread-safe.
  std::function<bool()> leads;
  // Null where nobody looks on.
  Watcher* watcher = nullptr;
  ProgressPoller::Ask ask_progress;  // empty: over HTTP
  NodeLeases::Clock boot_time;       // empty: this machine's
};

}  // namespace muster::kube
