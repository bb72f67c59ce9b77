#include "operator/api/overview.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "operator/api/progress.h"

namespace muster::api {
namespace {

JobStatus with(const std::vector<std::pair<std::string, bool>>& conditions,
               const std::string& reason = "Any") {
  JobStatus status;
  for (const auto& [type, value] : conditions) {
    status.conditions.push_back({type, value, reason, "", Time{}});
  }
  return status;
}

TEST(Overview, NamesTheStateByTheConditionThatWeighsMost) {
  EXPECT_EQ(state_word(JobStatus{}), "Pending");
  EXPECT_EQ(state_word(with({{"Accepted", true}, {"Running", false}})), "Pending");
  EXPECT_EQ(state_word(with({{"Accepted", false}, {"Running", false}})), "NotAccepted");
  EXPECT_EQ(state_word(with({{"Accepted", true}, {"Running", true}})), "Running");
  EXPECT_EQ(state_word(with({{"Running", true}, {"Restarting", true}})), "Restarting");
  EXPECT_EQ(state_word(with({{"Running", false}, {"Suspended", true}}, "Suspended")), "Suspended");
  EXPECT_EQ(state_word(with({{"Running", true}, {"Suspended", false}}, "Suspending")),
            "Suspending");
  EXPECT_EQ(state_word(with({{"Running", true}, {"Suspended", false}}, "Resumed")), "Running");
  EXPECT_EQ(state_word(with({{"Suspended", true}, {"FailureTarget", true}})), "Failing");
  EXPECT_EQ(state_word(with({{"Running", true}, {"SuccessCriteriaMet", true}})), "Completing");
  EXPECT_EQ(state_word(with({{"FailureTarget", true}, {"Failed", true}, {"Finished", true}})),
            "Failed");
  EXPECT_EQ(state_word(with({{"SuccessCriteriaMet", true}, {"Succeeded", true}})), "Succeeded");
}

// A job that has trained, whose replicas are not ready since `running`, and which was suspended and
// resumed at `resumed`.
JobStatus lost_at(int running, std::optional<int> resumed = std::nullopt) {
  const auto at = [](int seconds) { return Time{std::chrono::seconds(seconds)}; };
  JobStatus status;
  status.progress = {{"step", 7}};
  status.conditions.push_back({"Running", false, "ReplicasNotReady", "", at(running)});
  if (resumed) status.conditions.push_back({"Suspended", false, "Resumed", "", at(*resumed)});
  return status;
}

TEST(Overview, SaysThatARunningJobStandsStill) {
  EXPECT_EQ(state_word(with({{"Running", true}, {"Stalled", true}})), "Stalled");
  EXPECT_EQ(state_word(with({{"Running", true}, {"Stalled", false}})), "Running");
  EXPECT_EQ(state_word(with({{"Stalled", true}, {"FailureTarget", true}})), "Failing");
}

TEST(Overview, SaysThatAJobRecoversThatHasTrainedAndLostReplicas) {
  EXPECT_EQ(state_word(lost_at(5)), "Recovering");
  JobStatus never_trained = lost_at(5);
  never_trained.progress = {{"step", 0}};
  EXPECT_EQ(state_word(never_trained), "Pending");
  EXPECT_EQ(state_word(lost_at(5, 8)), "Pending") << "it is on its way up after a suspension";
  EXPECT_EQ(state_word(lost_at(9, 8)), "Recovering") << "and has run since";
  for (const char* reason : {"NodeLost", "Evicted", "Preempted", "RunnerLost"}) {
    JobStatus disrupted = lost_at(5);
    disrupted.conditions.push_back({"Restarting", true, reason, "", Time{}});
    EXPECT_EQ(state_word(disrupted), "Recovering") << reason;
  }
  JobStatus failed = lost_at(5);
  failed.conditions.push_back({"Restarting", true, "ReplicaFailed", "", Time{}});
  EXPECT_EQ(state_word(failed), "Restarting");
}

TEST(Overview, CountsReplicasOfAllRoles) {
  JobStatus status;
  EXPECT_EQ(ready_text(status), "");
  status.replica_statuses[Role::ps] = {1, 1, 0, 0, 0};
  status.replica_statuses[Role::worker] = {2, 3, 0, 0, 0};
  EXPECT_EQ(ready_text(status), "3/4");
}

TEST(Overview, TellsStepsOfAllThatThereAre) {
  JobStatus status;
  EXPECT_EQ(steps_text(status), "");
  status.progress = {{"step", 12}};
  EXPECT_EQ(steps_text(status), "12");
  status.progress["totalSteps"] = 500;
  EXPECT_EQ(steps_text(status), "12/500");
}

TEST(Progress, TakesWhatTheSchemaHasAndNothingElse) {
  EXPECT_TRUE(progress_of(nullptr).is_null());
  EXPECT_TRUE(progress_of(Json::array({1})).is_null());
  EXPECT_TRUE(progress_of({{"role", "chief"}, {"generation", 3}}).is_null());
  const Json whole = {
      {"step", 12},
      {"totalSteps", 500},
      {"loss", "NaN"},
      {"metrics", {{"accuracy", 0.5}}},
      {"examplesPerSecond", 12.5},
      {"lastCheckpointStep", 10},
      {"lastCheckpointTime", "2026-01-02T03:04:05Z"},
      {"requestedCheckpoint", {{"request", "now"}, {"step", 10}, {"checkpoint", "/m/ckpt-10-g1"}}},
      {"etaSeconds", 3},
      {"goodput", 0.98}};
  EXPECT_EQ(nlohmann::json(progress_of(whole)), nlohmann::json(whole));
}

TEST(Progress, ComesInTheOrderInWhichTheApiServerGivesItBack) {
  const Json answer = {{"step", 1}, {"metrics", {{"b", 1}, {"a", 2}}}, {"loss", "1"}};
  EXPECT_EQ(progress_of(answer).dump(), R"({"loss":"1","metrics":{"a":2,"b":1},"step":1})");
}

TEST(Progress, LeavesOutWhatTheApiServerWouldRefuse) {
  const Json taken = progress_of({{"step", "12"},
                                  {"totalSteps", -1},
                                  {"loss", std::string(65, '1')},
                                  {"metrics", {{"accuracy", "high"}}},
                                  {"lastCheckpointStep", 1e300},
                                  {"goodput", 1}});
  EXPECT_EQ(taken, (Json{{"goodput", 1}}));
}

// 1e20 comes back from the API server as an integer of 21 digits.
TEST(Progress, LeavesOutNumbersThatNotEverybodyCanReadBack) {
  const double most = 9223372036854774784.0;  // the double before 2^63
  const Json taken = progress_of({{"etaSeconds", 1e20},
                                  {"examplesPerSecond", std::numeric_limits<double>::infinity()},
                                  {"goodput", std::numeric_limits<double>::quiet_NaN()},
                                  {"lastCheckpointStep", std::numeric_limits<uint64_t>::max()},
                                  {"metrics", {{"accuracy", 0.5}, {"perplexity", -1e20}}},
                                  {"step", std::numeric_limits<int64_t>::max()}});
  EXPECT_EQ(taken, (Json{{"step", std::numeric_limits<int64_t>::max()}}));
  EXPECT_EQ(progress_of({{"etaSeconds", most}}), (Json{{"etaSeconds", most}}));
  EXPECT_TRUE(progress_of({{"etaSeconds", std::numeric_limits<uint64_t>::max()}}).is_null());
}

TEST(Results, HaveSixDigitsAndNothingThatIsNotKnown) {
  EXPECT_TRUE(results_of(nullptr).is_null());
  const Json said = {{"step", 1564},
                     {"trainLoss", 0.123456789},
                     {"trainSeconds", 1e-310},
                     {"stepsPerSecond", 4},
                     {"model", nullptr},
                     {"stoppedEarly", true},
                     {"validation", {{"loss", 2.0}, {"accuracy", nullptr}}},
                     {"test", {{"error", "first " + std::string(5000, 'x') + " last"}}}};
  const Json taken = results_of(said);
  EXPECT_EQ(taken["trainLoss"], 0.123457);
  EXPECT_EQ(taken["validation"], (Json{{"loss", 2.0}}));
  EXPECT_TRUE(taken["test"]["error"].get<std::string>().ends_with("x last"));
  EXPECT_LE(taken["test"]["error"].get<std::string>().size(), 1024u);
  EXPECT_FALSE(taken.contains("stepsPerSecond"));
  const Json more = results_of(Json::parse(
      R"({"validation": {"loss": 1.0, "balancedAccuracy": 0.123456789, "list": [1], "text": "x"}})"));
  EXPECT_EQ(more["validation"], (Json{{"balancedAccuracy", 0.123457}, {"loss", 1.0}}));
  EXPECT_FALSE(taken.contains("model"));
  EXPECT_EQ(results_of(taken), taken);
}

}  // namespace
}  // namespace muster::api
