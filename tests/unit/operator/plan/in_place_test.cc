#include "operator/plan/in_place.h"

#include <gmock/gmock.h>

#include "tests/unit/operator/plan/scene.h"

namespace muster::plan {
namespace {

using api::FailureAction;
using testing::HasSubstr;
using testing::Not;

void restart(Scene& scene, Role role, int index, int code, int times = 1, bool ready = false) {
  ObservedReplica& replica = scene.replica(role, index);
  replica.restarts += times;
  replica.exit_code = code;
  replica.ready = ready;
}

TEST(InPlace, ARestartOfALivingReplicaIsCountedOnceAndNothingIsCreated) {
  Scene scene(full_job());
  scene.start();
  restart(scene, Role::worker, 1, 137);
  EXPECT_EQ(created(scene.step()), "");
  scene.step_after(10);
  EXPECT_EQ(scene.job.status.restarts, 1);
  EXPECT_EQ(scene.record(Role::worker, 1).restarts, 1);
  EXPECT_EQ(scene.job.status.restart_reasons[Role::worker]["RestartedInPlace"], 1);
  EXPECT_EQ(scene.record(Role::worker, 1).attempt, 0);
  EXPECT_EQ(scene.reason("Restarting"), "RestartedInPlace");
  EXPECT_THAT(scene.condition("Restarting").message,
              HasSubstr("worker-1 was restarted in place after exit code 137"));
  scene.replica(Role::worker, 1).ready = true;
  scene.step();
  EXPECT_FALSE(scene.has("Restarting"));
}

TEST(InPlace, WhoServesAgainWhenItIsSeenIsNoRestartingJob) {
  Scene scene(full_job());
  scene.start();
  restart(scene, Role::ps, 0, 1, 2, /*ready=*/true);
  scene.step();
  EXPECT_EQ(scene.job.status.restarts, 2);
  EXPECT_FALSE(scene.has("Restarting"));
  EXPECT_TRUE(scene.has("Running"));
}

TEST(InPlace, IsToldWithHowLongItTookToGoOn) {
  Scene scene(full_job());
  scene.start();
  restart(scene, Role::worker, 1, 137, 1, /*ready=*/true);
  scene.replica(Role::worker, 1).outage_seconds = 2.13;
  const Plan plan = scene.step();
  ASSERT_EQ(plan.events.size(), 1U);
  EXPECT_EQ(plan.events[0].reason, "RestartedInPlace");
  EXPECT_THAT(plan.events[0].message, HasSubstr("; training went on 2.1 s after that"));
}

TEST(InPlace, ManyThatCrashTogetherAreToldOfInAFewEvents) {
  Scene scene(make_job().workers(20).backoff_limit(100));
  scene.start();
  for (int index = 0; index < 20; ++index) restart(scene, Role::worker, index, 137);
  EXPECT_EQ(scene.step().events.size(), 4U);
  EXPECT_EQ(scene.job.status.restarts, 1) << "one round";
  EXPECT_EQ(scene.job.status.replica_statuses.at(Role::worker).restarts, 20);
}

TEST(InPlace, MoreThanTheLimitFailsTheJob) {
  Scene scene(full_job().backoff_limit(2));
  scene.start();
  restart(scene, Role::worker, 0, 1, 3);
  scene.step();
  EXPECT_EQ(scene.reason("FailureTarget"), "BackoffLimitExceeded");
  EXPECT_THAT(scene.condition("FailureTarget").message,
              HasSubstr("worker-0 was restarted in place 3 times"));
  EXPECT_EQ(scene.job.status.restarts, 2);
}

TEST(InPlace, AFailureCountsItsRestartsAndItself) {
  Scene scene(full_job());
  scene.start();
  scene.replica(Role::worker).restarts = 3;
  scene.fail(Role::worker, 0, 1);
  EXPECT_EQ(created(scene.step()), "worker-0.1");
  EXPECT_EQ(scene.job.status.restarts, 4);
  EXPECT_EQ(scene.record(Role::worker).restarts_in_place, 0) << "of the attempt that comes";
  scene.start_all();
  scene.step();
  EXPECT_EQ(scene.job.status.restarts, 4);
}

TEST(InPlace, ASuccessIsNeverUndone) {
  Scene scene(full_job().backoff_limit(2));
  scene.start();
  scene.replica(Role::worker).restarts = 5;
  scene.succeed(Role::worker);
  scene.step();
  EXPECT_FALSE(scene.has("FailureTarget"));
  EXPECT_TRUE(scene.record(Role::worker).succeeded);
  EXPECT_EQ(scene.job.status.restarts, 2);
}

TEST(InPlace, APermanentExitCodeFailsTheJob) {
  Scene scene(full_job());
  scene.start();
  restart(scene, Role::worker, 0, 65);
  scene.step();
  EXPECT_EQ(scene.reason("FailureTarget"), "PermanentExitCode");
}

TEST(InPlace, ARuleDecides) {
  struct Case {
    FailureAction action;
    int restarts, run;
    bool fails;
  };
  for (const Case& test :
       {Case{FailureAction::fail_job, 0, 0, true}, Case{FailureAction::restart_job, 1, 1, false},
        Case{FailureAction::ignore, 0, 0, false},
        Case{FailureAction::restart_replica, 1, 0, false}}) {
    Scene scene(full_job().own_image().rule({3}, {}, {Role::worker}, test.action));
    scene.start();
    restart(scene, Role::worker, 0, 3);
    scene.step();
    EXPECT_EQ(scene.job.status.restarts, test.restarts);
    EXPECT_EQ(scene.job.status.run, test.run);
    EXPECT_EQ(scene.has("FailureTarget"), test.fails);
  }
}

TEST(InPlace, AnEvaluatorHasItsOwnLimit) {
  Scene scene(full_job().backoff_limit(1));
  scene.start();
  restart(scene, Role::evaluator, 0, 1, 2);
  scene.step();
  EXPECT_FALSE(scene.has("FailureTarget"));
  EXPECT_TRUE(scene.record(Role::evaluator).failed);
  EXPECT_EQ(scene.leaving(), "evaluator-0");
  EXPECT_EQ(scene.job.status.restarts, 0);
}

TEST(InPlace, AReplicaThatNobodyWantsAnyMoreIsNotCounted) {
  Scene scene(full_job());
  scene.start();
  scene.job.replicas[Role::worker].replicas = 1;
  restart(scene, Role::worker, 1, 1);
  scene.step();
  EXPECT_EQ(scene.job.status.restarts, 0);
}

TEST(InPlace, ASupervisorRestartsOnlyWhereNobodyWantsASayInIt) {
  api::TrainingJob job = full_job();
  EXPECT_EQ(restarts_in_place(job, Role::worker), 3);
  job.status.restarts = 4;
  EXPECT_EQ(restarts_in_place(job, Role::worker), 2) << "of 6";
  EXPECT_EQ(restarts_in_place(job, Role::evaluator), 3) << "has its own limit";
  job.status.restarts = 7;
  EXPECT_EQ(restarts_in_place(job, Role::worker), 0);
  const api::TrainingJob never = full_job().never_restart(Role::worker);
  EXPECT_EQ(restarts_in_place(never, Role::worker), 0);
  EXPECT_EQ(restarts_in_place(never, Role::ps), 3);
  const api::TrainingJob ruled = full_job().rule({3}, {}, {Role::ps}, FailureAction::fail_job);
  EXPECT_EQ(restarts_in_place(ruled, Role::ps), 0);
  EXPECT_EQ(restarts_in_place(ruled, Role::worker), 3);
}

TEST(Failure, WhoWasAskedToLeaveBeforeItStartedIsNoFailure) {
  Scene scene(full_job());
  scene.step();
  ObservedReplica& pending = scene.replica(Role::worker);
  pending.deleting = true;
  pending.phase = Phase::failed;
  EXPECT_EQ(created(scene.step()), "worker-0.1");
  EXPECT_EQ(scene.job.status.restarts, 0);
}

TEST(Failure, AnImageThatAnswersAnEvictionWithZeroIsStartedAgain) {
  Scene scene(full_job().own_image());
  scene.start();
  ObservedReplica& evicted = scene.replica(Role::worker);
  evicted.deleting = true;
  evicted.reason = "Evicted";
  scene.succeed(Role::worker);
  scene.step();
  EXPECT_FALSE(scene.record(Role::worker).succeeded);
  EXPECT_EQ(scene.record(Role::worker).attempt, 1);
  EXPECT_EQ(scene.job.status.restarts, 0);
}

}  // namespace
}  // namespace muster::plan
