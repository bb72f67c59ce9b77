#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "common/document.h"

namespace muster::kube {

// Asks the leading replica of each job how far it has come: GET http://<pod IP>:<port>/progress. In
// nobody's way: each answer is waited for one second, may be 64 KiB and no redirect, and one that
// does not come changes nothing but that the next is asked for later, and after those that answer.
//
// The leading replica is asked more often than progress is reported: the replicas that it misses
// must be known sooner.
class ProgressPoller {
 public:
  using Clock = std::chrono::steady_clock;
  struct Settings {
    std::chrono::milliseconds until_first_step{1'000};  // between questions
    std::chrono::milliseconds period{3'000};            // from then on
    std::chrono::milliseconds longest_pause{60'000};    // of one that does not answer
    std::chrono::milliseconds between_news{10'000};     // of progress, once it trains
  };
  // Throws Unavailable where no answer came.
  using Ask = std::function<std::string(const std::string& address)>;
  using OnNews = std::function<void(const std::string& job)>;
  // The leading replica's view of the other replicas, for a job that runs muster-trainer.
  struct Group {
    bool silent = false;            // it has not answered the last request: the rest is empty
    std::set<std::string> missing;  // replicas ("worker-1") that do not attend its group
    // The last restart in place of a replica after which training has gone on.
    struct Restart {
      int attempt = 0;     // of the replica
      int restarts = 0;    // in its container so far
      int exit_code = 0;   // of the trainer's last process
      double seconds = 0;  // from that process's end until training went on
      bool operator==(const Restart&) const = default;
    };
    std::map<std::string, Restart> restarts;
    bool operator==(const Group&) const = default;
  };

  // `on_news` when a job's progress has changed, on a thread of run().
  ProgressPoller(Settings settings, OnNews on_news, Ask ask);
  ProgressPoller(Settings settings, OnNews on_news);

  // The pod with this UID, at "host:port", speaks for the job. Nothing changes where it did before.
  void watch(const std::string& job, const std::string& pod_uid, const std::string& address);
  // Nobody speaks for it now; what was said last stays.
  void rest(const std::string& job);
  // Nobody will, and this was the last word.
  void conclude(const std::string& job, Json progress);
  void forget(const std::string& job);

  // What status.progress may hold of the last answer (api/progress.h); null before the first.
  Json progress(const std::string& job) const;
  // Taken from the last answer of the replica that speaks for the job now; empty before the first.
  Group group(const std::string& job) const;

  // Until `stop`. Any number of threads may be in it.
  void run(const std::stop_token& stop);

 private:
  struct Target {
    std::string pod_uid, address;  // empty: nobody to ask
    Clock::time_point due{};
    std::chrono::milliseconds pause{0};
    bool asking = false;
    Json progress;
    Group group;
    bool untold = false;  // its progress has changed since it was news
    Clock::time_point told{};
  };
  struct Question {
    std::string job, pod_uid, address;
  };
  using Targets = std::map<std::string, Target>;
  Targets::iterator first(Clock::time_point now);
  std::optional<Question> next(const std::stop_token& stop);
  bool keep(const Question& question, const std::optional<std::string>& answer);
  bool keep_progress(Target& target, Json progress, Clock::time_point now) const;

  const Settings settings_;
  const OnNews on_news_;
  const Ask ask_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  Targets targets_;
  uint64_t changes_ = 0;  // of when somebody is due
};

}  // namespace muster::kube
