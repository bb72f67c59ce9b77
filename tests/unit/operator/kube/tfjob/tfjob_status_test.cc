#include "operator/kube/tfjob/tfjob_status.h"

#include <gtest/gtest.h>

#include "common/json.h"
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
      {with({{"Running", true, "", "", at(2)}}), "Created Running"},
      {with({{"Running", false, "", "", at(5)}, {"Restarting", true, "", "", at(5)}}),
       "not-Running Created Restarting"},
      {with({{"Running", true, "", "", at(7)}, {"Restarting", false, "", "", at(7)}}),
       "not-Restarting Created Running"},
      {with({{"Running", false, "", "", at(9)},
             {"SuccessCriteriaMet", true, "", "", at(8)},
             {"Succeeded", true, "", "", at(9)},
             {"Finished", true, "", "", at(9)}}),
       "not-Running Created Succeeded"},
      {with({{"Suspended", true, "", "", at(3)}}), "Created Suspended"},
  };
  for (const auto& one : cases) EXPECT_EQ(shown(tfjob_status(kTfJob, {}, one.status)), one.shown);
}

TEST(TfJobStatus, SpeaksAsTheApiOfTfJobsDoes) {
  api::TrainingJob job;
  job.says_master = true;
  api::JobStatus status = with({{"Suspended", false, "Resumed", "", at(3)},
                                {"Failed", true, "BackoffLimit", "worker 0 ended with 1", at(9)}});
  status.start_time = at(1);
  status.completion_time = at(9) + std::chrono::milliseconds(250);
  status.replica_statuses[api::Role::chief] = {.ready = 1, .active = 1};
  status.replica_statuses[api::Role::worker] = {.active = 2, .succeeded = 1, .failed = 3};
  EXPECT_EQ(tfjob_status(kTfJob, job, status), Json::parse(R"({
    "conditions": [
      {"type": "Suspended", "status": "False", "reason": "TFJobResumed",
       "message": "TFJob lab/mnist is resumed.", "lastUpdateTime": "2026-01-02T03:04:08Z",
       "lastTransitionTime": "2026-01-02T03:04:08Z"},
      {"type": "Created", "status": "True", "reason": "TFJobCreated",
       "message": "TFJob lab/mnist is created.", "lastUpdateTime": "2026-01-02T03:04:05Z",
       "lastTransitionTime": "2026-01-02T03:04:05Z"},
      {"type": "Failed", "status": "True", "reason": "TFJobFailed",
       "message": "TFJob lab/mnist has failed. worker 0 ended with 1",
       "lastUpdateTime": "2026-01-02T03:04:14Z", "lastTransitionTime": "2026-01-02T03:04:14Z"}],
    "replicaStatuses": {"Master": {"active": 1, "succeeded": 0, "failed": 0},
                        "Worker": {"active": 2, "succeeded": 1, "failed": 3}},
    "startTime": "2026-01-02T03:04:06Z", "completionTime": "2026-01-02T03:04:14Z"})"));
}

TEST(TfJobStatus, NewsIsWhatBecameTrue) {
  const Json running = tfjob_status(kTfJob, {}, with({{"Running", true, "", "", at(2)}}));
  const Json ended = tfjob_status(
      kTfJob, {}, with({{"Running", false, "", "", at(4)}, {"Succeeded", true, "", "", at(4)}}));
  EXPECT_EQ(tfjob_news(Json(), running).size(), 2u);
  const auto news = tfjob_news(running, ended);
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0]["reason"], "TFJobSucceeded");
  EXPECT_FALSE(is_tfjob_finished(running));
  EXPECT_TRUE(is_tfjob_finished(ended));
  const Json refused = refused_tfjob_status(kTfJob, "no workers", at(1));
  EXPECT_TRUE(is_tfjob_finished(refused));
  EXPECT_TRUE(is_refused_tfjob(refused));
  EXPECT_FALSE(is_refused_tfjob(ended));
}

}  // namespace
}  // namespace muster::kube
