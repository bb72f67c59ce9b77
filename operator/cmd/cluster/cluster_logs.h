#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "operator/api/training_job.h"
#include "operator/cmd/cluster/pod_log.h"

namespace muster::cmd {

// "worker-1" of a pod with our labels, "" of any other.
std::string replica_of(const api::TrainingJob& job, const kube::Pod& pod);

// Whether the container that counts has started, so that there is a log.
bool has_log(const kube::Pod& pod);

// The logs of pods that come and go, each followed by a thread of its own; lines come as they are
// written.
class LogFollowers {
 public:
  // One call at a time, on any thread; not after this has gone.
  using OnLine = std::function<void(const std::string& replica, const PodLogLine& line)>;
  LogFollowers(kube::Transport& transport, int tail, std::chrono::milliseconds pause,
               OnLine on_line)
      : transport_(transport), tail_(tail), pause_(pause), on_line_(std::move(on_line)) {}

  // Ends what is under way.
  ~LogFollowers();
  LogFollowers(const LogFollowers&) = delete;
  LogFollowers& operator=(const LogFollowers&) = delete;

  // A pod of `replica` as it is now: followed from the first time on, read to its end when it has
  // ended.
  void see(const std::string& replica, const kube::Pod& pod, bool ended);
  // Of these UIDs alone there still are pods.
  void keep(const std::set<std::string>& uids);
  // Reads all to their ends. Precondition: nothing that is followed writes any more.
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
  const OnLine on_line_;
  std::mutex mutex_;                           // of on_line_
  std::map<std::string, Follower> followers_;  // by UID
};

}  // namespace muster::cmd
