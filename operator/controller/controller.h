#pragma once

#include <functional>
#include <optional>
#include <string>

#include "operator/cluster/cluster.h"
#include "operator/controller/work_queue.h"

namespace muster::controller {

// Makes jobs what their plan says, on any Cluster: fetch -> plan -> one status write -> act. Acts
// only when woken, by a cluster's events or by a time that a plan named; what wakes it and what
// waits for it is the caller's, so that it serves a watch of Kubernetes and a poll() of processes
// alike.
class Controller {
 public:
  // A pass that did not succeed: it is tried again, after a back-off of its own where `will_retry`;
  // else (Invalid) when the job is woken next.
  struct Trouble {
    std::string key;
    std::string message;
    int failures;  // in a row
    bool will_retry;
  };
  using Report = std::function<void(const Trouble&)>;

  Controller(cluster::Cluster& cluster, Report report, BackOff back_off = {})
      : cluster_(cluster), report_(std::move(report)), queue_(back_off) {}

  // The job should be looked at. Thread-safe.
  void wake(const std::string& key);

  // Looks at every job that is due, and returns when the next one is, if any is known. Several
  // threads may call it if the Cluster allows that; a job is looked at by one of them at a time.
  std::optional<api::Time> work();

 private:
  void look_at(const std::string& key);
  void reconcile(const std::string& key);

  cluster::Cluster& cluster_;
  const Report report_;
  WorkQueue queue_;
};

}  // namespace muster::controller
