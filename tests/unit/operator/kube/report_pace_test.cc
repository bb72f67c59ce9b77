#include "operator/kube/report_pace.h"

#include <gtest/gtest.h>

namespace muster::kube {
namespace {

using namespace std::chrono_literals;

constexpr api::Time kNow(std::chrono::hours(24 * 365 * 56));

api::JobStatus status() {
  api::JobStatus status;
  status.conditions = {{"Accepted", true, "Valid", "", kNow},
                       {"Running", false, "ReplicasNotReady", "1 of 4 replicas are ready", kNow}};
  status.replica_statuses[api::Role::worker] = {1, 2, 0, 0, 0};
  return status;
}

TEST(IsReport, IsWhatNothingFollowsFrom) {
  const api::JobStatus before = status();
  api::JobStatus after = before;
  after.progress = Json{{"step", 3}};
  after.replica_statuses[api::Role::worker].ready = 2;
  after.conditions[1].message = "2 of 4 replicas are ready";
  EXPECT_TRUE(is_report(before, after));
}

TEST(IsReport, IsNoDecisionAndNoCount) {
  const api::JobStatus before = status();
  const auto changed = [&](auto change) {
    api::JobStatus after = before;
    change(after);
    return is_report(before, after);
  };
  EXPECT_FALSE(changed([](auto& after) { after.restarts = 1; }));
  EXPECT_FALSE(changed([](auto& after) { after.records.push_back({}); }));
  EXPECT_FALSE(changed([](auto& after) { after.counted_uids = {"a"}; }));
  EXPECT_FALSE(changed([](auto& after) { after.run = 1; }));
  EXPECT_FALSE(changed([](auto& after) { after.start_time = kNow; }));
  EXPECT_FALSE(changed([](auto& after) { after.observed_generation = 2; }));
  EXPECT_FALSE(changed([](auto& after) { after.conditions[0].message = "other"; }));
  EXPECT_FALSE(changed([](auto& after) { after.conditions[1].status = true; }));
  EXPECT_FALSE(changed([](auto& after) {
    after.conditions.push_back({"FailureTarget", true, "X", "", kNow});
  }));
}

TEST(ReportPace, SpreadsReportsOfManyJobs) {
  ReportPace pace(/*per_second=*/20, /*of_a_job=*/0s);
  EXPECT_EQ(pace.turn("a", kNow), kNow);
  EXPECT_EQ(pace.turn("b", kNow), kNow + 50ms);
  EXPECT_EQ(pace.turn("c", kNow), kNow + 100ms);
  EXPECT_EQ(pace.turn("b", kNow + 10ms), kNow + 50ms) << "keeps its turn";
  EXPECT_EQ(pace.turn("b", kNow + 60ms), kNow + 50ms) << "it has come";
  EXPECT_EQ(pace.turn("d", kNow + 10s), kNow + 10s) << "time that nobody used is no debt";
  EXPECT_EQ(pace.turn("e", kNow + 10s), kNow + 10s + 50ms);
}

TEST(ReportPace, KeepsTimeBetweenReportsOfOneJob) {
  ReportPace pace(20, 2s);
  EXPECT_EQ(pace.turn("a", kNow), kNow + 2s) << "not the first one at once";
  EXPECT_EQ(pace.turn("a", kNow + 1s), kNow + 2s);
  EXPECT_EQ(pace.turn("a", kNow + 3s), kNow + 2s);
  EXPECT_EQ(pace.turn("a", kNow + 3s), kNow + 5s);
  pace.forget("a");
  EXPECT_EQ(pace.turn("a", kNow + 4s), kNow + 6s);
}

}  // namespace
}  // namespace muster::kube
