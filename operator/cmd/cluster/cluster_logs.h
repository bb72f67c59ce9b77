#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/threads/mutex.h"
#include "operator/api/training_job.h"
#include "operator/cmd/cluster/pod_log.h"

namespace muster::cmd {

// Returns "worker-1" for a pod with our labels, "" for any other.
std::string replica_of(const api::TrainingJob& job, const kube::Pod& pod);

// Whether the container that counts has started, so that it has a log.
bool has_log(const kube::Pod& pod);

struct ReplicaLine {
  std::string replica;
  PodLogLine line;
};

// Sorts by time, and keeps the order of lines of the same time.
void sort_by_time(std::vector<ReplicaLine>& lines);

// Follows the logs of pods that come and go, each on a thread of its own.
class LogFollowers {
 public:
  LogFollowers(kube::Transport& transport, int tail, std::chrono::milliseconds pause)
      : transport_(transport), tail_(tail), pause_(pause) {}

  // Ends all reading that is under way.
  ~LogFollowers();
  LogFollowers(const LogFollowers&) = delete;
  LogFollowers& operator=(const LogFollowers&) = delete;

  // Reports the current state of a pod of `replica`. The pod's log is followed from the first call
  // on, and read to its end once the pod has ended.
  void see(const std::string& replica, const kube::Pod& pod, bool ended);
  // Stops following every pod except those with these UIDs.
  void keep(const std::set<std::string>& uids);
  // Reads all logs to their ends. Precondition: no followed pod writes any more.
  void finish();
  // Returns the lines that have come since the last call, in the order of time. First waits until
  // each log has been read up to the point that it had reached when the pod was first seen, at most
  // for `patience`.
  std::vector<ReplicaLine> take(std::chrono::milliseconds patience);

  bool empty() const { return followers_.empty(); }

 private:
  struct Follower {
    std::atomic<bool> ended = false;
    std::stop_source gone;
    std::jthread thread;  // the last member: made last, ends first
  };
  void run(const std::string& replica, const kube::Pod& pod, Follower& follower);

  kube::Transport& transport_;
  const int tail_;
  const std::chrono::milliseconds pause_;
  Mutex mutex_;
  ConditionVariable caught_up_;
  int behind_ MUSTER_GUARDED_BY(mutex_) = 0;  // followers that have not caught up yet
  std::vector<ReplicaLine> lines_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::string, Follower> followers_;  // by UID
};

}  // namespace muster::cmd
