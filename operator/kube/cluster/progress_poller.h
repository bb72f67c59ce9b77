#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "common/documents/document.h"
#include "common/threads/mutex.h"
#include "operator/plan/job_ledger.h"

namespace muster::kube {

// Asks the leading replica of each job for its progress: GET http://<pod IP>:<port>/progress.
// Asking delays nothing else: an answer may take at most one second and 64 KiB, and must not be a
// redirect. If no answer comes, the replica is asked again later, after the replicas that answer.
//
// The leading replica is asked more often than progress is reported, because the missing replicas
// that it names must be known sooner.
class ProgressPoller {
 public:
  using Clock = std::chrono::steady_clock;
  struct Settings {
    std::chrono::milliseconds until_first_step{1'000};  // time between questions
    std::chrono::milliseconds period{3'000};            // time between questions after that step
    std::chrono::milliseconds longest_pause{60'000};    // for a replica that does not answer
    // Time between reports of progress, once it trains.
    std::chrono::milliseconds between_news{10'000};
  };
  // Asks one replica. Throws Unavailable if no answer came.
  using Ask = std::function<std::string(const std::string& address)>;
  using OnNews = std::function<void(const std::string& job)>;
  // The leading replica's view of the other replicas, for a job that runs muster-trainer.
  struct Group {
    bool silent = false;  // it has not answered the last request; the other members are empty
    std::set<std::string> missing;  // replicas ("worker-1") that are not in its group now
    // The last restart in place of a replica after which training has gone on.
    struct Restart {
      int attempt = 0;     // the replica's attempt
      int restarts = 0;    // restarts in its container so far
      int exit_code = 0;   // exit code of the trainer's last process
      double seconds = 0;  // from that process's end until training went on
      bool operator==(const Restart&) const = default;
    };
    std::map<std::string, Restart> restarts;
    bool operator==(const Group&) const = default;
  };

  // `on_news` is called on a thread of run() when a job's progress has changed.
  ProgressPoller(Settings settings, OnNews on_news, Ask ask);
  ProgressPoller(Settings settings, OnNews on_news);

  // Makes the pod with this UID, at "host:port", the one that is asked for the job's progress. Does
  // nothing if it already is.
  void watch(const std::string& job, const std::string& pod_uid, const std::string& address);
  // Stops asking for this job for now; the last answer stays.
  void rest(const std::string& job);
  // Stops asking for this job for good; `progress` is its last progress, and `ledger` what the
  // leading replica has said last of its time.
  void conclude(const std::string& job, Json progress,
                std::optional<plan::ProcessLedger> ledger = {});
  void forget(const std::string& job);

  // Returns the part of the last answer that status.progress may hold (api/progress.h); null before
  // the first answer.
  Json progress(const std::string& job) const;
  // Returns the ledger in the last answer of the replica that is asked now, or of the job that was
  // concluded.
  std::optional<plan::ProcessLedger> ledger(const std::string& job) const;
  // Returns the group in the last answer of the replica that is asked now; empty before its first
  // answer.
  Group group(const std::string& job) const;

  // Runs until `stop`. Any number of threads may call it.
  void run(const std::stop_token& stop);

 private:
  struct Target {
    std::string pod_uid, address;  // empty: no replica to ask
    Clock::time_point due{};
    std::chrono::milliseconds pause{0};
    bool asking = false;
    Json progress;
    Group group;
    std::optional<plan::ProcessLedger> ledger;
    Clock::time_point answered{};
    bool untold = false;  // the progress has changed since the last news
    Clock::time_point told{};
  };
  struct Question {
    std::string job, pod_uid, address;
  };
  using Targets = std::map<std::string, Target>;
  Targets::iterator first(Clock::time_point now) MUSTER_REQUIRES(mutex_);
  std::optional<Question> next(const std::stop_token& stop);
  bool keep(const Question& question, const std::optional<std::string>& answer);
  bool keep_progress(Target& target, Json progress, Clock::time_point now) const;

  const Settings settings_;
  const OnNews on_news_;
  const Ask ask_;
  mutable Mutex mutex_;
  StoppableConditionVariable changed_;
  Targets targets_ MUSTER_GUARDED_BY(mutex_);
  uint64_t changes_ MUSTER_GUARDED_BY(mutex_) = 0;  // number of changes of `due`
};

}  // namespace muster::kube
