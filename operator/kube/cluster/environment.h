#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "operator/api/training_job.h"
#include "operator/kube/api/event_ledger.h"
#include "operator/kube/cluster/node_leases.h"
#include "operator/kube/cluster/progress_poller.h"

namespace muster::kube {

// A watcher is told about changes of jobs, for example to count them in metrics. It is called on
// the threads that call KubeCluster.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void restarted(api::Role role, const std::string& reason, int times) = 0;
  virtual void took_first_step(std::chrono::milliseconds since_creation) = 0;
};

// The functions that a KubeCluster needs from its surroundings.
struct Environment {
  std::function<api::Time()> now;
  // Asks for a look at the job, at the latest at this time. Thread-safe; may be called while
  // KubeCluster is being called.
  std::function<void(const std::string& key, api::Time at)> wake;
  std::function<void(const EventSubject& subject, EventText text)> emit;
  // Returns whether this process may write. Asked before each call that writes
  // (leader_transport.h). Thread-safe.
  std::function<bool()> leads;
  // Called when a TrainingJob or its status has changed in the view of a KubeCluster. Empty: nobody
  // is told.
  std::function<void(const std::string& key)> job_changed;
  // Null if there is no watcher.
  Watcher* watcher = nullptr;
  ProgressPoller::Ask ask_progress;  // empty: asks over HTTP
  NodeLeases::Clock boot_time;       // empty: this machine's clock
};

}  // namespace muster::kube
