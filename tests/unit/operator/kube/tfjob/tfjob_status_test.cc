#include "operator/kube/tfjob/tfjob_status.h"

#include <gtest/gtest.h>

#include "common/documents/json.h"
#include "operator/api/status.h"

namespace muster::kube {
namespace {

const Json kTfJob = Json::parse(R"({"metadata": {"name": "mnist", "namespace": "lab",
    "creationTimestamp": "2026-01-02T03:04:05Z"}})");

api::Time at(int second) {
  return *api::parse_time("2026-01-02T03:04:05Z") + std::chrono::seconds(second);
}

// "Created Running False-Restarting": the types of the conditions in their order.
std::string shown(const Json& status) {
  std::string text;
  for (const Json& condition : status["conditions"])
    text += (text.empty() ? "" : " ") + std::string(condition["status"] == "True" ? "" : "not-") +
            condition["type"].get<std::string>();
  return text;
}

api::JobStatus with(const std::vector<api::Condition>& conditions) {
  api::JobStatus status;
  status.conditions = conditions;
  return status;
}

TEST(TfJobStatus, ShowsTheNewestConditionThatIsTrueLast) {
  const struct {
    api::JobStatus status;
    const char* shown;
  } cases[] = {
      {with({}), "Created"},
      {with({{"Accepted", true, "", "", at(1)}}), "Created"},
      {with({{"Running", true, "", "", at(2)}}), "Created"},
      {with({{"Restarting", true, "", "", at(5)}}), "Created Restarting"},
      {with({{"Restarting", false, "", "", at(7)}}), "not-Restarting Created"},
      {with({{"Suspended", true, "", "", at(3)}}), "Created Suspended"},
      {with({{"SuccessCriteriaMet", true, "", "", at(8)}}), "Created Succeeded"},
      {with({{"FailureTarget", true, "", "", at(8)}}), "Created Failed"},
      {with({{"FailureTarget", true, "", "", at(8)}, {"Failed", true, "", "", at(9)}}),
       "Created Failed"},
  };
  for (const auto& one : cases)
    EXPECT_EQ(shown(tfjob_status(kTfJob, {}, one.status, at(0))), one.shown);
}

api::TrainingJob job_of(const std::vector<api::Role>& roles) {
  api::TrainingJob job;
  for (const api::Role role : roles) job.replicas[role].replicas = 2;
  return job;
}

// The replicas of these roles run; the others are there.
api::JobStatus with_running(const api::TrainingJob& job, const std::vector<api::Role>& roles) {
  api::JobStatus status;
  for (const auto& [role, spec] : job.replicas) status.replica_statuses[role] = {.active = 2};
  for (const api::Role role : roles) status.replica_statuses[role].ready = 1;
  return status;
}

TEST(TfJobStatus, RunsWhenTheChiefDoesOrElseAnyWorker) {
  using enum api::Role;
  const struct {
    std::vector<api::Role> roles, running;
    const char* shown;
  } cases[] = {
      {{ps, worker}, {}, "Created"},
      {{ps, worker}, {ps}, "Created"},
      {{ps, worker}, {worker}, "Created Running"},
      {{ps, chief, worker}, {ps, worker}, "Created"},
      {{ps, chief, worker}, {chief}, "Created Running"},
  };
  for (const auto& [roles, running, expected] : cases) {
    const api::TrainingJob job = job_of(roles);
    EXPECT_EQ(shown(tfjob_status(kTfJob, job, with_running(job, running), at(2))), expected);
  }
}

TEST(TfJobStatus, RunningKeepsTheTimeOfItsLastChange) {
  const api::TrainingJob job = job_of({api::Role::worker});
  Json tfjob = kTfJob;
  const auto since = [&](bool runs, int second) {
    const std::vector<api::Role> running(runs ? 1 : 0, api::Role::worker);
    tfjob["status"] = tfjob_status(tfjob, job, with_running(job, running), at(second));
    const Json condition = tfjob_condition(tfjob["status"], "Running");
    return condition["status"].get<std::string>() + " " +
           condition["lastTransitionTime"].get<std::string>();
  };
  EXPECT_EQ(since(true, 2), "True 2026-01-02T03:04:07Z");
  EXPECT_EQ(since(true, 3), "True 2026-01-02T03:04:07Z");
  EXPECT_EQ(since(false, 4), "False 2026-01-02T03:04:09Z");
  EXPECT_EQ(since(false, 5), "False 2026-01-02T03:04:09Z");
  EXPECT_EQ(since(true, 6), "True 2026-01-02T03:04:11Z");
}

TEST(TfJobStatus, SpeaksAsTheApiOfTfJobsDoes) {
  api::TrainingJob job = job_of({api::Role::chief, api::Role::worker});
  job.says_master = true;
  api::JobStatus status =
      with({{"Suspended", false, "Resumed", "", at(3)},
            {"FailureTarget", true, "BackoffLimit", "worker 0 ended with 1", at(9)}});
  status.start_time = at(1);
  status.completion_time = at(20);
  status.replica_statuses[api::Role::chief] = {.ready = 1, .active = 1};
  status.replica_statuses[api::Role::worker] = {
      .ready = 2, .active = 5, .succeeded = 1, .failed = 3};
  EXPECT_EQ(tfjob_status(kTfJob, job, status, at(9)), Json::parse(R"({
    "conditions": [
      {"type": "Suspended", "status": "False", "reason": "TFJobResumed",
       "message": "TFJob lab/mnist is resumed.", "lastUpdateTime": "2026-01-02T03:04:08Z",
       "lastTransitionTime": "2026-01-02T03:04:08Z"},
      {"type": "Created", "status": "True", "reason": "TFJobCreated",
       "message": "TFJob lab/mnist is created.", "lastUpdateTime": "2026-01-02T03:04:05Z",
       "lastTransitionTime": "2026-01-02T03:04:05Z"},
      {"type": "Failed", "status": "True", "reason": "TFJobFailed",
       "message": "TFJob lab/mnist has failed. worker 0 ended with 1",
       "lastUpdateTime": "2026-01-02T03:04:14Z", "lastTransitionTime": "2026-01-02T03:04:14Z"},
      {"type": "Running", "status": "True", "reason": "TFJobRunning",
       "message": "TFJob lab/mnist is running.", "lastUpdateTime": "2026-01-02T03:04:14Z",
       "lastTransitionTime": "2026-01-02T03:04:14Z"}],
    "replicaStatuses": {"Master": {"active": 1, "succeeded": 0, "failed": 0},
                        "Worker": {"active": 2, "succeeded": 1, "failed": 3}},
    "startTime": "2026-01-02T03:04:06Z", "completionTime": "2026-01-02T03:04:14Z"})"));
}

// kubeflow.org/v1 counts replicas that still run as succeeded, and counts nothing afterwards.
TEST(TfJobStatus, OfASuccessStaysAsItWasDecided) {
  const api::TrainingJob job = job_of({api::Role::ps, api::Role::worker});
  api::JobStatus status = with({{"SuccessCriteriaMet", true, "", "", at(8)}});
  status.replica_statuses[api::Role::ps] = {.ready = 2, .active = 2};
  status.replica_statuses[api::Role::worker] = {.succeeded = 1, .failed = 1};
  Json tfjob = kTfJob;
  tfjob["status"] = tfjob_status(tfjob, job, status, at(8));
  EXPECT_EQ(tfjob["status"]["completionTime"], "2026-01-02T03:04:13Z");
  EXPECT_EQ(tfjob["status"]["replicaStatuses"], Json::parse(R"({
      "PS": {"active": 0, "succeeded": 2, "failed": 0},
      "Worker": {"active": 0, "succeeded": 1, "failed": 1}})"));
  status.replica_statuses[api::Role::ps] = {.failed = 2};
  EXPECT_EQ(tfjob_status(tfjob, job, status, at(9)), tfjob["status"]);
}

TEST(TfJobStatus, NewsIsWhatBecameTrue) {
  const api::TrainingJob job = job_of({api::Role::worker});
  Json tfjob = kTfJob;
  const Json running = tfjob["status"] =
      tfjob_status(tfjob, job, with_running(job, {api::Role::worker}), at(2));
  const Json ended =
      tfjob_status(tfjob, job, with({{"SuccessCriteriaMet", true, "", "", at(4)}}), at(4));
  EXPECT_EQ(tfjob_news(Json(), running).size(), 2u);
  const auto news = tfjob_news(running, ended);
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0]["reason"], "TFJobSucceeded");
  EXPECT_FALSE(is_tfjob_finished(running));
  EXPECT_TRUE(is_tfjob_finished(ended));
}

TEST(TfJobStatus, OneThatWasRefusedIsOverUntilItsSpecChanges) {
  Json tfjob = kTfJob;
  tfjob["metadata"]["generation"] = 3;
  tfjob["status"] = refused_tfjob_status(tfjob, "no workers", at(1));
  EXPECT_TRUE(is_tfjob_finished(tfjob["status"]));
  EXPECT_TRUE(is_tfjob_over(tfjob));
  for (const int generation : {4, 31}) {
    tfjob["metadata"]["generation"] = generation;
    EXPECT_FALSE(is_tfjob_over(tfjob)) << generation;
  }
  tfjob["status"] = tfjob_status(kTfJob, {}, with({{"FailureTarget", true, "", "", at(4)}}), at(4));
  EXPECT_TRUE(is_tfjob_over(tfjob)) << "it has run";
}

}  // namespace
}  // namespace muster::kube
