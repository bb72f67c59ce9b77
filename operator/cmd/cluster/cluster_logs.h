#pragma once

#include <atomic>
#include <chrono>
#include <functional>
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

// Follows the logs of pods that come and go, each on a thread of its own; lines are passed on as
// they are written.
class LogFollowers {
 public:
  // Called for each line, by one thread at a time, but on any thread; never after the destructor.
  using OnLine = std::function<void(const std::string& replica, const PodLogLine& line)>;
  LogFollowers(kube::Transport& transport, int tail, std::chrono::milliseconds pause,
               OnLine on_line)
      : transport_(transport), tail_(tail), pause_(pause), on_line_(std::move(on_line)) {}

  // Ends all reading that is under way.
  ~LogFollowers();
  LogFollowers(const LogFollowers&) = delete;
  LogFollowers& operator=(const LogFollowers&) = delete;

  // Tells the current state of a pod of `replica`: it is followed from the first call on, and read
  // to its end when it has ended.
  void see(const std::string& replica, const kube::Pod& pod, bool ended);
  // Stops following every pod except those with these UIDs.
  void keep(const std::set<std::string>& uids);
  // Reads all logs to their ends. Precondition: no followed pod writes any more.
  void finish();

  bool empty() const { return followers_.empty(); }

 private:
  struct Follower {
    std::atomic<bool> ended = false;
    std::stop_source gone;
    std::jthread thread;  // the last to be made, the first to go
  };
  void run(const std::string& replica, const kube::Pod& pod, Follower& follower);

  kube::Transport& transport_;
  const int tail_;
  const std::chrono::milliseconds pause_;
  Mutex mutex_;
  const OnLine on_line_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::string, Follower> followers_;  // by UID
};

}  // namespace muster::cmd
