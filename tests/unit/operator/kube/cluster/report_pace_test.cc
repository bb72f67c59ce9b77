#include "operator/kube/cluster/report_pace.h"

#include <gtest/gtest.h>

#include "operator/plan/plan.h"

namespace muster::kube {
namespace {

using namespace std::chrono_literals;

constexpr api::Time kBeginning(std::chrono::hours(24 * 365 * 56));

api::JobStatus status() {
  api::JobStatus status;
  status.conditions = {
      {"Accepted", true, "Valid", "", kBeginning},
      {"Running", false, "ReplicasNotReady", "1 of 4 replicas are ready", kBeginning}};
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
  EXPECT_FALSE(changed([](auto& after) { after.start_time = kBeginning; }));
  EXPECT_FALSE(changed([](auto& after) { after.observed_generation = 2; }));
  EXPECT_FALSE(changed([](auto& after) { after.conditions[0].message = "other"; }));
  EXPECT_FALSE(changed([](auto& after) { after.conditions[1].status = true; }));
  EXPECT_FALSE(changed([](auto& after) {
    after.conditions.push_back({"FailureTarget", true, "X", "", kBeginning});
  }));
}

TEST(IsReport, IsAnEndThatDecidesNothing) {
  using Change = void (*)(api::ReplicaRecord&);
  const Change succeeds = [](auto& record) { record.exit_code = 0, record.succeeded = true; };
  const Change fails = [](auto& record) { record.exit_code = 1, record.failed = true; };
  const Change leaves = [](auto& record) {
    record.exit_code = 143, ++record.attempt, record.replacing.clear();
  };
  const Change restarts = [](auto& record) {
    record.exit_code = 1, ++record.attempt, record.not_before = kBeginning, ++record.restarts;
  };
  struct Case {
    const char* decided;
    api::Role role;
    Change change;
    bool report;
  };
  for (const Case& one :
       std::initializer_list<Case>{{"", api::Role::worker, succeeds, true},
                                   {"", api::Role::worker, leaves, false},
                                   {"", api::Role::worker, restarts, false},
                                   {"SuccessCriteriaMet", api::Role::evaluator, succeeds, true},
                                   {"SuccessCriteriaMet", api::Role::evaluator, leaves, false},
                                   {"SuccessCriteriaMet", api::Role::ps, leaves, true},
                                   {"FailureTarget", api::Role::worker, fails, true},
                                   {"FailureTarget", api::Role::ps, restarts, false}}) {
    api::JobStatus before = status();
    if (*one.decided) before.conditions.push_back({one.decided, true, "X", "", kBeginning});
    before.records.resize(2);
    before.records[1].role = one.role;
    api::JobStatus after = before;
    one.change(after.records[1]);
    after.counted_uids = {"a"};
    EXPECT_EQ(is_report(before, after), one.report)
        << one.decided << " " << api::name_of(one.role) << " " << *after.records[1].exit_code;
  }
}

api::TrainingJob new_job() {
  api::TrainingJob job;
  job.replicas[api::Role::worker].replicas = 2;
  return job;
}

TEST(IsStart, SaysThatReplicasAreOnTheirWay) {
  api::JobStatus after = status();
  after.observed_generation = 1;
  after.start_time = kBeginning;
  after.records.resize(2);
  after.records[1].index = 1;
  EXPECT_TRUE(is_start(new_job(), after));
  after.replica_statuses[api::Role::worker].active = 2;
  EXPECT_TRUE(is_start(new_job(), after)) << "they are made before it is written";
}

// Its folder is chosen again where that status was not written.
TEST(IsStart, IsTheFirstPlanOfAJobThatTrains) {
  api::TrainingJob job = new_job();
  job.name_space = "lab";
  job.name = "mnist";
  job.training = {{"epochs", 1}};
  job.transport = api::Transport::none;
  const plan::Plan first = plan::plan(job, {}, kBeginning);
  ASSERT_EQ(first.status.storage_folder, "lab-mnist");
  EXPECT_TRUE(is_start(job, first.status));
}

// A Secret is made only under a name that was written before.
TEST(IsStart, IsNotTheFirstPlanOfReplicasThatKnowEachOther) {
  api::TrainingJob job = new_job();
  job.training = {{"epochs", 1}};
  job.replicas[api::Role::worker].replicas = 2;
  EXPECT_FALSE(is_start(job, plan::plan(job, {}, kBeginning).status));
}

TEST(IsStart, IsNoDecisionAndNoCount) {
  const auto changed = [](auto change) {
    api::TrainingJob job = new_job();
    api::JobStatus after = status();
    after.records.resize(1);
    EXPECT_TRUE(is_start(job, after));
    change(job, after);
    return is_start(job, after);
  };
  EXPECT_FALSE(changed([](auto& job, auto& after) { job.status = after; })) << "it has a status";
  EXPECT_FALSE(changed([](auto& job, auto&) { job.run_policy.active_deadline_seconds = 9; }))
      << "which counts from its startTime";
  EXPECT_FALSE(changed([](auto&, auto& after) { after.conditions[0].status = false; }));
  EXPECT_FALSE(changed([](auto&, auto& after) { after.conditions[1].status = true; }));
  EXPECT_FALSE(changed([](auto&, auto& after) {
    after.conditions.push_back({"Suspended", true, "X", "", kBeginning});
  }));
  EXPECT_FALSE(changed([](auto&, auto& after) { after.records[0].attempt = 1; }));
  EXPECT_FALSE(changed([](auto&, auto& after) { after.records[0].restarts = 1; }));
  EXPECT_FALSE(changed([](auto&, auto& after) { after.counted_uids = {"a"}; }));
  EXPECT_FALSE(changed([](auto&, auto& after) { after.restarts = 1; }));
  EXPECT_FALSE(changed([](auto&, auto& after) { after.run = 1; }));
  EXPECT_FALSE(changed([](auto&, auto& after) { after.completion_time = kBeginning; }));
}

TEST(ReportPace, SpreadsReportsOfManyJobs) {
  ReportPace pace(/*per_second=*/20, /*of_a_job=*/0s);
  EXPECT_EQ(pace.turn("a", kBeginning), kBeginning);
  pace.wrote("a", kBeginning);
  EXPECT_EQ(pace.turn("b", kBeginning), kBeginning + 50ms);
  EXPECT_EQ(pace.turn("c", kBeginning), kBeginning + 100ms);
  EXPECT_EQ(pace.turn("b", kBeginning + 10ms), kBeginning + 50ms) << "keeps its turn";
  EXPECT_LE(pace.turn("b", kBeginning + 60ms), kBeginning + 60ms) << "it has come";
  pace.wrote("b", kBeginning + 60ms);
  EXPECT_EQ(pace.turn("c", kBeginning + 100ms), kBeginning + 110ms)
      << "not too soon after one that came late";
  EXPECT_LE(pace.turn("c", kBeginning + 110ms), kBeginning + 110ms);
  pace.wrote("c", kBeginning + 110ms);
  EXPECT_EQ(pace.turn("d", kBeginning + 10s), kBeginning + 10s)
      << "time that nobody used is no debt";
  pace.wrote("d", kBeginning + 10s);
  EXPECT_EQ(pace.turn("e", kBeginning + 10s), kBeginning + 10s + 50ms);
}

TEST(ReportPace, NobodyWaitsForThoseWhoseReportIsMoot) {
  ReportPace pace(20, 0s);
  EXPECT_EQ(pace.turn("first", kBeginning), kBeginning);
  pace.wrote("first", kBeginning);
  for (int i = 0; i < 100; ++i) pace.turn(std::to_string(i), kBeginning);
  for (int i = 0; i < 50; ++i) pace.wrote(std::to_string(i), kBeginning);
  for (int i = 50; i < 100; ++i) pace.forget(std::to_string(i));
  EXPECT_EQ(pace.turn("last", kBeginning), kBeginning + 50ms);
}

TEST(ReportPace, KeepsTimeBetweenReportsOfOneJob) {
  ReportPace pace(20, 2s);
  EXPECT_EQ(pace.turn("a", kBeginning), kBeginning + 2s) << "not the first one at once";
  EXPECT_EQ(pace.turn("a", kBeginning + 1s), kBeginning + 2s);
  EXPECT_LE(pace.turn("a", kBeginning + 3s), kBeginning + 3s);
  EXPECT_LE(pace.turn("a", kBeginning + 4s), kBeginning + 4s) << "it was not written";
  pace.wrote("a", kBeginning + 4s);
  EXPECT_EQ(pace.turn("a", kBeginning + 5s), kBeginning + 6s);
  pace.forget("a");
  EXPECT_EQ(pace.turn("a", kBeginning + 5s), kBeginning + 7s);
}

}  // namespace
}  // namespace muster::kube
