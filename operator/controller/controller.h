#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "operator/cluster/cluster.h"
#include "operator/controller/ledgers.h"
#include "operator/controller/work_queue.h"

namespace muster::controller {

// Observes a controller's passes, for metrics. Called on the threads that call the controller.
class Monitor {
 public:
  virtual ~Monitor() = default;
  enum class Result {
    done,
    later,
    error
  };  // `later`: done, and the plan named a time to look again
  virtual void began(const std::string& key, std::chrono::milliseconds waited) = 0;
  virtual void ended(const std::string& key, Result result) = 0;
};

// Makes passes over keys: each key that is due is reconciled, and again after a pause if that did
// not succeed. A pass over a job drives it to what its plan says, on any Cluster: fetch -> plan ->
// one status write -> act. The controller acts only when it is woken, by an event or at a time that
// a pass named. The caller waits and calls wake(), so the same controller works with a watch of
// Kubernetes and with a poll() of processes.
class Controller {
 public:
  // A pass that did not succeed. The pass is repeated after the key's back-off. After the error
  // Invalid, which seldom goes away by itself, it is repeated after the longest back-off. Waking
  // the job repeats it earlier.
  struct Trouble {
    std::string key;
    std::string message;
    int failures;  // in a row
    bool invalid;
    bool broken = false;   // a bug: neither Unavailable nor Invalid. Otherwise handled like Invalid
    bool lasting = false;  // a write failed, and waiting does not help; see WriteError::lasting()
  };
  using Report = std::function<void(const Trouble&)>;

  // Returns the time by which jobs wait. Thread-safe.
  using Clock = std::function<Moment()>;

  // After a pass the job rests for a multiple of the CPU time that the pass took this thread, so
  // that no job has more than a fifth of a core, however many of its replicas change.
  static constexpr int kRest = 4;
  // A shorter rest is skipped, as for nearly all jobs, which have few replicas.
  static constexpr std::chrono::milliseconds kLeastRest{50};
  static constexpr std::chrono::milliseconds kLongestRest{1000};

  // Returns the CPU time that the calling thread has used.
  using CpuTime = std::function<std::chrono::nanoseconds()>;
  static std::chrono::nanoseconds cpu_time_of_thread();

  // Makes one pass over a key, and returns when it is to be looked at again, if that is known, by
  // the wall clock. Throws Unavailable or Invalid if it does not succeed.
  using Reconcile = std::function<std::optional<api::Time>(const std::string& key)>;
  using WallClock = std::function<api::Time()>;

  // `monitor` may be null.
  Controller(Reconcile reconcile, WallClock now, Report report, BackOff back_off = {},
             Monitor* monitor = nullptr, Clock clock = std::chrono::steady_clock::now,
             CpuTime cpu_time = cpu_time_of_thread)
      : reconcile_(std::move(reconcile)),
        now_(std::move(now)),
        report_(std::move(report)),
        monitor_(monitor),
        clock_(std::move(clock)),
        cpu_time_(std::move(cpu_time)),
        queue_(back_off) {}

  // A controller of the jobs of this cluster, which must outlive it.
  Controller(cluster::Cluster& cluster, Report report, BackOff back_off = {},
             Monitor* monitor = nullptr, Clock clock = std::chrono::steady_clock::now,
             CpuTime cpu_time = cpu_time_of_thread);

  // Asks to look at the job, now or at a time to come, by the wall clock. Thread-safe.
  void wake(const std::string& key);
  void wake(const std::string& key, api::Time at);

  // Returns how often in a row a look at the job has failed.
  int failures(const std::string& key) const { return queue_.failures(key); }

  // Looks at every job that is due, until `stop`, and returns in how long the next one is due, if
  // any is known. Several threads may call it if the Cluster allows that; only one of them at a
  // time looks at a job.
  std::optional<std::chrono::milliseconds> work(const std::stop_token& stop = {});

  // Returns what the time of the jobs was spent on; empty for a controller with passes of its own.
  Ledgers& ledgers() { return ledgers_; }

  // Returns the number of due jobs that no thread looks at yet.
  int waiting() const { return queue_.due(clock_()); }

 private:
  Monitor::Result look_at(const std::string& key);
  void rest(const std::string& key, std::chrono::nanoseconds used);
  std::optional<std::chrono::milliseconds> until_next() const;

  const Reconcile reconcile_;
  const WallClock now_;
  const Report report_;
  Monitor* const monitor_;
  const Clock clock_;
  const CpuTime cpu_time_;
  WorkQueue queue_;
  Ledgers ledgers_;
};

}  // namespace muster::controller
