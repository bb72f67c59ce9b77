#include "operator/cmd/cluster/job_wait.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "common/documents/json.h"
#include "common/exit_code.h"
#include "operator/api/overview.h"
#include "operator/cmd/show/attention.h"
#include "operator/cmd/show/display.h"
#include "operator/cmd/show/summary.h"
#include "operator/cmd/show/summary_text.h"
#include "operator/kube/pods/observe.h"
#include "operator/plan/retry.h"

namespace muster::cmd {

namespace {

using Clock = std::chrono::steady_clock;

bool is_over(const WaitOptions& options, Clock::time_point begin) {
  return options.timeout.count() > 0 && Clock::now() - begin >= options.timeout;
}

const api::Condition* condition_of(const api::JobStatus& status, const std::string& state) {
  if (state == "NotAccepted") return status.find("Accepted");
  if (state == "Failing" || state == "Failed") return status.find("FailureTarget");
  if (state == "Completing") return status.find("SuccessCriteriaMet");
  const api::Condition* suspended = status.find("Suspended");
  if (suspended != nullptr && suspended->reason == state) return suspended;
  return status.find(state);
}

bool is_refused(const api::TrainingJob& job) {
  const api::Condition* accepted = job.status.find("Accepted");
  return accepted != nullptr && !accepted->status && accepted->reason == "InvalidTemplate" &&
         job.status.observed_generation >= job.generation;
}

// Pods may be gone by now, so this uses the records, which also say how replicas ended.
int recorded_exit_code(const api::TrainingJob& job, const Json& summary) {
  std::vector<plan::ObservedReplica> ended;
  for (const api::ReplicaRecord& record : job.status.records) {
    if (!record.failed || record.role == api::Role::evaluator) continue;
    plan::ObservedReplica replica;
    replica.role = record.role;
    replica.index = record.index;
    replica.exit_code = record.exit_code;
    replica.finished = api::Time{};
    ended.push_back(replica);
  }
  return exit_code_of(job, ended, summary);
}

// A job that is waited for.
struct Watched {
  kube::ObjectName name;
  std::string state;  // the state shown last
  std::optional<api::TrainingJob> job;
  // Start of this state; nothing: an operator looks at the job.
  std::optional<Clock::time_point> unattended;
  bool told_unattended = false;
  std::optional<int> code;  // set once nothing is left to wait for
};

// Polls jobs, and continues if the API server does not answer for a while.
class Watch {
 public:
  Watch(const ClusterAccess& cluster, const std::vector<kube::ObjectName>& jobs,
        const WaitOptions& options, FILE* out)
      : cluster_(cluster), options_(options), display_(out) {
    for (const kube::ObjectName& job : jobs) jobs_.push_back({job, "", {}, {}, false, {}});
  }

  int run() {
    for (;; std::this_thread::sleep_for(options_.every)) {
      for (Watched& job : jobs_) {
        if (!job.code) look(job);
      }
      if (std::ranges::all_of(jobs_, [](const Watched& job) { return job.code.has_value(); })) {
        break;
      }
      display_.update([this](size_t width) { return progress(width); });
      if (is_over(options_, begin_)) throw_late();
    }
    display_.clear();
    if (!deleted_.empty()) throw Invalid(deleted_, first_code_);
    return first_code_;
  }

 private:
  void look(Watched& watched) {
    try {
      const std::optional<Json> object = cluster_.client().get(kube::training_jobs(), watched.name);
      lost_.reset();
      if (!object) return end_deleted(watched);
      watched.job = to_job(*object);
    } catch (const kube::ApiUnavailable& error) {
      const Clock::time_point now = Clock::now();
      if (!may_pass(error.status()) || (lost_ && now - *lost_ > kPatience)) throw;
      if (!lost_) warn(cluster_.explain(error.status(), error.what()) + "; trying again");
      if (!lost_) lost_ = now;
      return;
    }
    // If a succeeded job was given more epochs, the operator may not have seen them yet.
    if (!plan::asks_for_more(*watched.job)) tell_state(watched);
    tell_unattended(watched);
    if (plan::stays_finished(*watched.job)) return finish(watched);
    if (is_refused(*watched.job)) end(watched, kBadInput);
  }

  void tell_state(Watched& watched) {
    const std::string now = api::state_word(watched.job->status);
    if (now == watched.state) return;
    const bool failed = now == "Failed" || now == "Failing" || now == "NotAccepted";
    display_.event({failed ? plan::Event::Kind::warning : plan::Event::Kind::normal, now,
                    label(watched) + ": " + state_text(watched.job->status)});
    watched.state = now;
  }

  void tell_unattended(Watched& watched) {
    if (!is_unattended(*watched.job)) {
      watched.unattended.reset();
      watched.told_unattended = false;
      return;
    }
    if (!watched.unattended) watched.unattended = Clock::now();
    const bool late = Clock::now() - *watched.unattended >= options_.operator_takes;
    if (!late || watched.told_unattended) return;
    watched.told_unattended = true;
    warn(label(watched) + ": " + unattended_text(*watched.job));
  }

  void finish(Watched& watched) {
    const api::TrainingJob& job = *watched.job;
    Json summary;
    if (!job.status.results.is_null()) {
      summary = summary_of(job, replicas_of(job));
      display_.print(summary_text(label(watched), summary));
    }
    end(watched, recorded_exit_code(job, summary));
  }

  // Returns the replicas that still have a pod; none if the API server does not answer.
  std::vector<plan::ObservedReplica> replicas_of(const api::TrainingJob& job) const {
    std::vector<plan::ObservedReplica> replicas;
    try {
      for (const kube::Pod& pod : cluster_.pods_of(job)) {
        if (auto replica = kube::observe(pod)) replicas.push_back(std::move(*replica));
      }
    } catch (const kube::ApiUnavailable&) {
      // The replicas only help to say why an evaluation is missing.
    }
    return replicas;
  }

  void end_deleted(Watched& watched) {
    const std::string text =
        "expected " + object_name(watched.name.name) + " to finish, found that it was deleted";
    if (jobs_.size() > 1) warn(text);
    deleted_ += (deleted_.empty() ? "" : "\n") + text;
    end(watched, kBadInput);
  }

  void end(Watched& watched, int code) {
    watched.code = code;
    if (first_code_ == kSuccess) first_code_ = code;
  }

  [[noreturn]] void throw_late() const {
    std::vector<std::string> late;
    for (const Watched& job : jobs_) {
      if (job.code) continue;
      late.push_back(fmt::format("{}, found it {}", object_name(job.name.name),
                                 job.state.empty() ? "without an answer" : job.state));
    }
    throw Unavailable(fmt::format("expected all to finish within {} s: {}",
                                  options_.timeout.count(), fmt::join(late, "; ")));
  }

  // The progress of the jobs that have not finished: "a: step 3/10; b: step 7/10".
  std::string progress(size_t width) const {
    std::vector<const Watched*> running;
    for (const Watched& job : jobs_) {
      if (!job.code && job.job) running.push_back(&job);
    }
    const auto line = [](const Watched& job, size_t columns) {
      return progress_line(*job.job, job.job->status.progress, columns);
    };
    if (jobs_.size() == 1) return running.empty() ? "" : line(*running[0], width);
    std::string text;
    for (const Watched* job : running) {
      text += (text.empty() ? "" : "; ") + label(*job) + ": ";
      text += line(*job, width == std::string::npos ? width : width / running.size());
    }
    return text.substr(0, width);
  }

  // The job's name, with its namespace if the jobs are in several namespaces.
  std::string label(const Watched& watched) const {
    const bool several = std::ranges::any_of(jobs_, [&](const Watched& other) {
      return other.name.name_space != watched.name.name_space;
    });
    return (several ? watched.name.name_space + "/" : "") + watched.name.name;
  }

  void warn(const std::string& text) {
    display_.event({plan::Event::Kind::warning, "Unavailable", text});
  }

  const ClusterAccess& cluster_;
  const WaitOptions options_;
  const Clock::time_point begin_ = Clock::now();
  Display display_;
  std::vector<Watched> jobs_;
  std::optional<Clock::time_point> lost_;  // first call without an answer of the API server
  std::string deleted_;
  int first_code_ = kSuccess;  // the first code that was not 0
};

}  // namespace

std::string state_text(const api::JobStatus& status) {
  const std::string state = api::state_word(status);
  const api::Condition* condition = condition_of(status, state);
  if (condition == nullptr) return state;
  return fmt::format("{} ({}): {}", state, condition->reason, condition->message);
}

int wait_until_finished(const ClusterAccess& cluster, const std::vector<kube::ObjectName>& jobs,
                        const WaitOptions& options, FILE* out) {
  return Watch(cluster, jobs, options, out).run();
}

void wait_until_gone(const ClusterAccess& cluster, const api::TrainingJob& job,
                     const WaitOptions& options) {
  const Clock::time_point begin = Clock::now();
  for (;; std::this_thread::sleep_for(options.every)) {
    const std::optional<Json> object =
        cluster.client().get(kube::training_jobs(), {job.name_space, job.name});
    const bool there = object && string_or(member(*object, "metadata"), "uid", "") == job.uid;
    const size_t pods = cluster.pods_of(job).size();
    if (!there && pods == 0) return;
    if (is_over(options, begin)) {
      throw Unavailable(
          fmt::format("expected {} to be gone within {} s, found {}", object_name(job.name),
                      options.timeout.count(),
                      there ? "that it is still there" : std::to_string(pods) + " of its pods"));
    }
  }
}

}  // namespace muster::cmd
