#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "operator/cluster/cluster.h"
#include "operator/controller/work_queue.h"

namespace muster::controller {

// Looks on at a controller's passes, for metrics. Called by the threads that call it.
class Monitor {
 public:
  virtual ~Monitor() = default;
  enum class Result { done, later, error };  // `later`: and the plan named a time to look again
  virtual void began(const std::string& key, std::chrono::milliseconds waited) = 0;
  virtual void ended(const std::string& key, Result result) = 0;
};

// Makes jobs what their plan says, on any Cluster: fetch -> plan -> one status write -> act. Acts
// only when woken, by a cluster's events or by a time that a plan named; what wakes it and what
// waits for it is the caller's, so that it serves a watch of Kubernetes and a poll() of processes
// alike.
class Controller {
 public:
  // A pass that did not succeed. It is tried again after a back-off of its own; the longest one
  // where it was Invalid, which hardly passes by itself, if the job is not woken before.
  struct Trouble {
    std::string key;
    std::string message;
    int failures;  // in a row
    bool invalid;
  };
  using Report = std::function<void(const Trouble&)>;

  // `monitor` may be null.
  Controller(cluster::Cluster& cluster, Report report, BackOff back_off = {},
             Monitor* monitor = nullptr)
      : cluster_(cluster), report_(std::move(report)), monitor_(monitor), queue_(back_off) {}

  // The job should be looked at, now or at a time to come. Thread-safe.
  void wake(const std::string& key);
  void wake(const std::string& key, api::Time at);

  // Looks at every job that is due, until `stop`, and returns when the next one is, if any is
  // known. Several threads may call it if the Cluster allows that; a job is looked at by one of
  // them at a time.
  std::optional<api::Time> work(const std::stop_token& stop = {});

  // Jobs that are due and that nobody looks at yet.
  int waiting() const { return queue_.due(cluster_.now()); }

 private:
  Monitor::Result look_at(const std::string& key);
  // True if it is to be looked at again at a time that it has put in the queue.
  bool reconcile(const std::string& key);

  cluster::Cluster& cluster_;
  const Report report_;
  Monitor* const monitor_;
  WorkQueue queue_;
};

}  // namespace muster::controller
