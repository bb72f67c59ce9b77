#include "operator/cmd/job_wait.h"

#include <fmt/format.h>

#include <thread>

#include "common/exit_code.h"
#include "common/json.h"
#include "operator/api/overview.h"
#include "operator/cmd/display.h"
#include "operator/cmd/summary.h"

namespace muster::cmd {

namespace {

using Clock = std::chrono::steady_clock;

// With an API server that does not answer.
constexpr auto kPatience = std::chrono::minutes(5);

bool is_over(const WaitOptions& options, Clock::time_point begin) {
  return options.timeout.count() > 0 && Clock::now() - begin >= options.timeout;
}

const api::Condition* condition_of(const api::JobStatus& status, const std::string& state) {
  if (state == "NotAccepted") return status.find("Accepted");
  if (state == "Failing" || state == "Failed") return status.find("FailureTarget");
  if (state == "Completing") return status.find("SuccessCriteriaMet");
  if (state == "Suspending") return status.find("Suspended");
  return status.find(state);
}

bool is_refused(const api::TrainingJob& job) {
  const api::Condition* accepted = job.status.find("Accepted");
  return accepted != nullptr && !accepted->status && accepted->reason == "InvalidTemplate" &&
         job.status.observed_generation >= job.generation;
}

// Pods may be gone by now: how replicas ended is in the records, too.
int recorded_exit_code(const api::TrainingJob& job) {
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
  return exit_code_of(job, ended, nullptr);
}

// Polls a job, over times when the API server does not answer.
class Poll {
 public:
  Poll(const ClusterAccess& cluster, std::string name, Display& display)
      : cluster_(cluster), name_(std::move(name)), display_(display) {}

  // Nothing: no answer this time.
  std::optional<api::TrainingJob> look() {
    try {
      const std::optional<Json> object =
          cluster_.client().get(kube::training_jobs(), {cluster_.name_space(), name_});
      if (!object) {
        throw Invalid("expected " + object_name(name_) + " to finish, found that it was deleted");
      }
      lost_.reset();
      return to_job(*object);
    } catch (const kube::ApiUnavailable& error) {
      const Clock::time_point now = Clock::now();
      if (!may_pass(error.status()) || (lost_ && now - *lost_ > kPatience)) throw;
      if (!lost_) warn(cluster_.explain(error.status(), error.what()) + "; trying again");
      if (!lost_) lost_ = now;
      return std::nullopt;
    }
  }

 private:
  void warn(const std::string& text) {
    display_.event({plan::Event::Kind::warning, "Unavailable", text});
  }

  const ClusterAccess& cluster_;
  const std::string name_;
  Display& display_;
  std::optional<Clock::time_point> lost_;
};

}  // namespace

std::string state_text(const api::JobStatus& status) {
  const std::string state = api::state_word(status);
  const api::Condition* condition = condition_of(status, state);
  if (condition == nullptr) return state;
  return fmt::format("{} ({}): {}", state, condition->reason, condition->message);
}

int wait_until_finished(const ClusterAccess& cluster, const std::string& name,
                        const WaitOptions& options, FILE* out) {
  const Clock::time_point begin = Clock::now();
  Display display(out);
  Poll poll(cluster, name, display);
  std::string state;
  for (;; std::this_thread::sleep_for(options.every)) {
    if (const std::optional<api::TrainingJob> job = poll.look()) {
      const std::string now = api::state_word(job->status);
      const bool failed = now == "Failed" || now == "Failing" || now == "NotAccepted";
      if (now != state) {
        display.event({failed ? plan::Event::Kind::warning : plan::Event::Kind::normal, now,
                       name + ": " + state_text(job->status)});
      }
      state = now;
      if (job->status.is_true("Finished")) return recorded_exit_code(*job);
      if (is_refused(*job)) return kBadInput;
      display.update(*job, job->status.progress);
    }
    if (is_over(options, begin)) {
      throw Unavailable(fmt::format("expected {} to finish within {} s, found it {}",
                                    object_name(name), options.timeout.count(),
                                    state.empty() ? "without an answer" : state));
    }
  }
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
