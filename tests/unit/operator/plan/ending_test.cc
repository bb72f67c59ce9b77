#include <gmock/gmock.h>

#include "tests/unit/operator/plan/scene.h"

namespace muster::plan {
namespace {

using api::CleanPodPolicy;
using api::DecidedBy;

TEST(Success, IsDecidedByWhomTheJobNames) {
  struct Case {
    const char* name;
    api::TrainingJob job;
    std::vector<std::pair<Role, int>> succeed;
    const char* reason;  // "" not yet
  };
  const auto chief = std::pair(Role::chief, 0);
  const auto zero = std::pair(Role::worker, 0), one = std::pair(Role::worker, 1);
  const JobBuilder workers = make_job().ps(1).workers(2);
  const JobBuilder first = make_job().ps(1).workers(2).decided_by(DecidedBy::worker_zero);
  const Case cases[] = {
      {"chief", full_job(), {chief}, "ChiefSucceeded"},
      {"workers do not decide where there is a chief", full_job(), {zero, one}, ""},
      {"one of two workers", workers, {one}, ""},
      {"all workers", workers, {zero, one}, "AllWorkersSucceeded"},
      {"worker zero", first, {zero}, "WorkerZeroSucceeded"},
      {"not worker one", first, {one}, ""},
      {"all workers beside a chief",
       full_job().decided_by(DecidedBy::all_workers),
       {zero, one},
       "AllWorkersSucceeded"},
      {"the evaluator never", full_job(), {{Role::evaluator, 0}}, ""},
      {"the ps never", workers, {{Role::ps, 0}}, ""},
      {"nobody to decide", make_job().ps(1).decided_by(DecidedBy::chief), {{Role::ps, 0}}, ""},
  };
  for (const Case& test : cases) {
    Scene scene(test.job);
    scene.start();
    for (auto [role, index] : test.succeed) scene.succeed(role, index);
    scene.step();
    EXPECT_EQ(scene.has("SuccessCriteriaMet"), *test.reason != '\0') << test.name;
    if (scene.has("SuccessCriteriaMet")) {
      EXPECT_EQ(scene.reason("SuccessCriteriaMet"), test.reason);
    }
  }
}

TEST(Success, ThatAnotherJobHadReachedBeforeIsSaid) {
  Scene scene(full_job());
  scene.start();
  scene.view.results = {{"step", 40}, {"alreadyFinished", true}};
  scene.succeed(Role::chief);
  scene.step();
  EXPECT_EQ(scene.reason("SuccessCriteriaMet"), "AlreadyFinished");
  EXPECT_THAT(scene.condition("SuccessCriteriaMet").message, testing::HasSubstr("another job"));
}

TEST(Success, OfOneWorkerNamesIt) {
  Scene scene(make_job().workers(1));
  scene.start();
  scene.succeed(Role::worker);
  scene.step();
  EXPECT_EQ(scene.condition("SuccessCriteriaMet").message, "worker-0 succeeded");
}

TEST(Results, AreThoseOfTheLeadersSuccessWithWhatTheEvaluatorFindsLater) {
  Scene scene(full_job().own_image());
  scene.start();
  const Json of_leader = {{"step", 7}};
  const Json of_both = {{"step", 7}, {"test", {{"accuracy", 0.5}}}};
  scene.view.results = of_leader;  // of an earlier training in the same folder
  scene.step();
  EXPECT_TRUE(scene.job.status.results.is_null());
  scene.succeed(Role::chief);
  scene.step();
  EXPECT_EQ(scene.job.status.results, of_leader);
  scene.view.results = nullptr;  // the leader's pod is gone
  scene.step();
  EXPECT_EQ(scene.job.status.results, of_leader);
  scene.view.results = of_both;
  scene.succeed(Role::evaluator);
  scene.step();
  EXPECT_EQ(scene.job.status.results, of_both);
  for (int i = 0; i < 3; ++i) {
    scene.leave_all(0);
    scene.step();
  }
  EXPECT_TRUE(scene.has("Finished"));
  EXPECT_EQ(scene.job.status.results, of_both);
}

TEST(Results, OfASuccessThatARestartOfTheJobHasMadeVoidAreForgotten) {
  Scene scene(full_job()
                  .decided_by(DecidedBy::all_workers)
                  .rule({65}, {}, {}, api::FailureAction::restart_job));
  scene.start();
  scene.view.results = Json{{"step", 7}};
  scene.succeed(Role::chief);
  scene.step();
  EXPECT_FALSE(scene.job.status.results.is_null());
  scene.fail(Role::worker, 0, 65);
  scene.step();
  EXPECT_TRUE(scene.job.status.results.is_null());
}

TEST(Success, AReplicaThatSucceededIsNeverRunAgain) {
  Scene scene(full_job());
  scene.start();
  scene.succeed(Role::worker, 0);
  EXPECT_EQ(created(scene.step()), "");
  EXPECT_EQ(scene.job.status.replica_statuses[Role::worker].succeeded, 1);
  std::erase_if(scene.view.replicas, [](const ObservedReplica& replica) {
    return replica.role == Role::worker && replica.index == 0;
  });
  EXPECT_EQ(created(scene.step()), "") << "though it was collected";
  EXPECT_TRUE(scene.has("Running"));
}

TEST(Success, WinsOverFailuresInTheSameView) {
  Scene scene(full_job());
  scene.start();
  scene.fail(Role::worker, 0, 65);
  scene.succeed(Role::chief);
  scene.step();
  EXPECT_TRUE(scene.has("SuccessCriteriaMet"));
  EXPECT_FALSE(scene.has("FailureTarget"));
  EXPECT_EQ(scene.job.status.restarts, 0);
}

TEST(Ending, MembersThenEvaluatorThenPs) {
  Scene scene(full_job().own_image());
  scene.start();
  scene.succeed(Role::chief);
  scene.step();
  EXPECT_EQ(scene.leaving(), "worker-0 worker-1");
  scene.leave_all();
  scene.step();
  EXPECT_EQ(scene.live(), "ps-0 evaluator-0");
  EXPECT_EQ(scene.leaving(), "") << "the evaluator has its time, and ps leave last";
  scene.succeed(Role::evaluator);
  scene.step();
  EXPECT_EQ(scene.leaving(), "ps-0");
  EXPECT_FALSE(scene.has("Finished"));
  EXPECT_FALSE(scene.job.status.completion_time);
  scene.now += std::chrono::seconds(3);
  scene.leave_all();
  scene.step();
  EXPECT_TRUE(scene.has("Succeeded"));
  EXPECT_TRUE(scene.has("Finished"));
  EXPECT_EQ(scene.job.status.completion_time, scene.now);
  EXPECT_EQ(scene.reason("Finished"), "ChiefSucceeded");
}

TEST(Ending, MembersOfTheTrainerGetAFewSecondsToLeaveByThemselves) {
  Scene scene(full_job());
  scene.start();
  scene.succeed(Role::chief);
  const Plan plan = scene.step();
  EXPECT_EQ(scene.leaving(), "");
  EXPECT_EQ(plan.look_again, scene.now + std::chrono::seconds(5));
  scene.succeed(Role::worker, 0);
  scene.step_after(4.999);
  EXPECT_EQ(scene.leaving(), "");
  scene.step_after(0.001);
  EXPECT_EQ(scene.leaving(), "worker-1");
}

TEST(Ending, ReplicasThatNeverRanLeaveAtOnce) {
  Scene scene(full_job());
  scene.start();
  scene.replica(Role::worker, 1).phase = Phase::pending;
  scene.succeed(Role::chief);
  scene.step();
  EXPECT_EQ(scene.leaving(), "worker-1");
}

TEST(Ending, TheEvaluatorIsStoppedWhenItsTimeIsUpAndTheJobSucceeds) {
  Scene scene(make_job().ps(1).chief().evaluator().evaluator_timeout(60));
  scene.start();
  scene.succeed(Role::chief);
  const Plan plan = scene.step();
  EXPECT_EQ(plan.look_again, scene.now + std::chrono::seconds(60));
  scene.step_after(59.999);
  EXPECT_EQ(scene.leaving(), "");
  scene.step_after(0.001);
  EXPECT_EQ(scene.leaving(), "evaluator-0");
  scene.leave_all(137);
  scene.step();
  scene.leave_all();
  scene.step();
  EXPECT_TRUE(scene.has("Succeeded"));
}

TEST(Ending, AnEvaluatorThatFailsIsRestartedWithinItsTime) {
  Scene scene(make_job().ps(1).chief().evaluator().evaluator_timeout(60));
  scene.start();
  scene.succeed(Role::chief);
  scene.fail(Role::evaluator, 0, 1);
  EXPECT_EQ(created(scene.step()), "evaluator-0.1");
  scene.start_all();
  scene.fail(Role::evaluator, 0, 1);
  EXPECT_EQ(created(scene.step()), "") << "back-off";
  EXPECT_FALSE(scene.has("Finished"));
  EXPECT_EQ(scene.leaving(), "");
  EXPECT_EQ(created(scene.step_after(1)), "evaluator-0.2");
}

TEST(Ending, AnEvaluatorIsNotRestartedOnceTheFinalCheckpointIsEvaluated) {
  Scene scene(make_job().ps(1).chief().evaluator());
  scene.start();
  scene.succeed(Role::chief);
  scene.step();
  scene.view.final_checkpoint_evaluated = true;
  scene.step();
  EXPECT_EQ(scene.leaving(), "") << "it leaves by itself";
  scene.fail(Role::evaluator, 0, 1);
  EXPECT_EQ(created(scene.step()), "");
  EXPECT_EQ(scene.leaving(), "ps-0");
}

TEST(Ending, WithoutAnEvaluatorPsLeaveAfterTheMembers) {
  Scene scene(make_job().ps(2).workers(1));
  scene.start();
  scene.succeed(Role::worker);
  scene.step();
  EXPECT_EQ(scene.leaving(), "ps-0 ps-1");
  scene.leave_all();
  scene.step();
  EXPECT_TRUE(scene.has("Finished"));
}

TEST(Ending, AFailingJobStopsEverybodyPsLast) {
  Scene scene(full_job());
  scene.start();
  scene.fail(Role::worker, 0, 65);
  scene.step();
  EXPECT_EQ(scene.leaving(), "chief-0 worker-1 evaluator-0");
  EXPECT_FALSE(scene.has("Failed"));
  scene.leave_all();
  scene.step();
  EXPECT_EQ(scene.leaving(), "ps-0");
  scene.leave_all();
  scene.step();
  EXPECT_TRUE(scene.has("Failed"));
  EXPECT_TRUE(scene.has("Finished"));
  EXPECT_EQ(scene.reason("Failed"), "PermanentExitCode");
  EXPECT_FALSE(scene.job.status.find("Succeeded"));
}

TEST(Ending, WhatWasDecidedIsNotDecidedAgain) {
  Scene scene(full_job().deadline(100));
  scene.start();
  scene.fail(Role::worker, 0, 65);
  scene.step();
  const api::Condition target = scene.condition("FailureTarget");
  scene.succeed(Role::chief);
  scene.fail(Role::worker, 1, 90);
  scene.step_after(200);
  EXPECT_EQ(scene.condition("FailureTarget"), target);
  EXPECT_FALSE(scene.job.status.find("SuccessCriteriaMet"));
}

Scene finished(const JobBuilder& builder) {
  Scene scene(builder);
  scene.start();
  scene.succeed(Role::chief);
  scene.step();
  scene.step_after(5);
  for (int i = 0; i < 3; ++i) {
    scene.leave_all();
    scene.step();
  }
  EXPECT_TRUE(scene.has("Finished"));
  return scene;
}

TEST(Ending, AFinishedJobStaysFinishedWhateverIsInView) {
  Scene scene = finished(make_job().ps(1).chief().workers(1));
  const api::JobStatus before = scene.job.status;
  scene.job.suspend = true;
  scene.job.replicas[Role::worker].replicas = 5;
  scene.view.invalid_template = "no";
  ObservedReplica late;
  late.role = Role::worker;
  late.uid = "late";
  late.phase = Phase::running;
  scene.view.replicas = {late};
  const Plan plan = scene.step_after(1000);
  EXPECT_EQ(created(plan), "");
  EXPECT_EQ(scene.leaving(), "worker-0") << "who comes late leaves";
  scene.leave_all(1);
  scene.step();
  EXPECT_EQ(scene.job.status.counted_uids, std::vector<std::string>{"late"});
  scene.job.status.counted_uids = before.counted_uids;
  EXPECT_EQ(scene.job.status, before);
}

TEST(Cleanup, FollowsThePolicy) {
  struct Case {
    CleanPodPolicy policy;
    size_t after_restart, after_end;
  };
  for (const Case& test : {Case{CleanPodPolicy::running, 3, 2}, Case{CleanPodPolicy::all, 3, 0},
                           Case{CleanPodPolicy::none, 4, 4}}) {
    Scene scene(make_job().ps(1).chief().workers(1).own_image().clean(test.policy));
    scene.start();
    scene.fail(Role::worker, 0, 1);
    scene.step();
    EXPECT_EQ(scene.view.replicas.size(), test.after_restart);
    scene.start_all();
    scene.succeed(Role::chief);
    scene.succeed(Role::worker);
    scene.step();
    scene.leave_all();
    // The cluster lets go of what was deleted, has ended and is counted.
    scene.step();
    std::erase_if(scene.view.replicas, [&](const ObservedReplica& replica) {
      return replica.deleting && test.policy != CleanPodPolicy::none;
    });
    scene.step();
    EXPECT_TRUE(scene.has("Finished"));
    EXPECT_EQ(scene.view.replicas.size(), test.after_end);
  }
}

TEST(TimeToLive, RunsFromCompletion) {
  Scene scene = finished(make_job().ps(1).chief().time_to_live(100));
  Plan plan = scene.step();
  EXPECT_FALSE(plan.remove_job);
  EXPECT_EQ(plan.look_again, *scene.job.status.completion_time + std::chrono::seconds(100));
  EXPECT_FALSE(scene.step_after(99.999).remove_job);
  EXPECT_TRUE(scene.step_after(0.001).remove_job);
}

TEST(Deadline, FailsAJobThatIsActiveTooLong) {
  Scene scene(full_job().deadline(60));
  const Plan plan = scene.step();
  EXPECT_EQ(plan.look_again, scene.now + std::chrono::seconds(60));
  scene.start_all();
  scene.step_after(59.999);
  EXPECT_FALSE(scene.has("FailureTarget"));
  scene.step_after(0.001);
  EXPECT_EQ(scene.reason("FailureTarget"), "DeadlineExceeded");
  EXPECT_EQ(scene.leaving(), "chief-0 worker-0 worker-1 evaluator-0");
}

TEST(Deadline, DoesNotHitAJobThatHasSucceeded) {
  Scene scene(full_job().deadline(60));
  scene.start();
  scene.succeed(Role::chief);
  scene.step_after(60);
  scene.step_after(60);
  EXPECT_FALSE(scene.job.status.find("FailureTarget"));
}

TEST(Deadline, HugeNumbersDoNotOverflow) {
  const int64_t huge = std::numeric_limits<int64_t>::max();
  Scene scene(full_job().deadline(huge).evaluator_timeout(huge).time_to_live(huge));
  scene.start();
  EXPECT_FALSE(scene.has("FailureTarget"));
  scene.succeed(Role::chief);
  scene.step();
  EXPECT_EQ(scene.leaving(), "");
}

}  // namespace
}  // namespace muster::plan
