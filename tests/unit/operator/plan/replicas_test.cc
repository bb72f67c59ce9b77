#include <gmock/gmock.h>

#include "tests/unit/operator/plan/scene.h"

namespace muster::plan {
namespace {

TEST(Replicas, AreCreatedInOneGo) {
  Scene scene(full_job());
  EXPECT_EQ(created(scene.step()), "ps-0.0 chief-0.0 worker-0.0 worker-1.0 evaluator-0.0");
  EXPECT_EQ(scene.job.status.start_time, scene.now);
  EXPECT_EQ(scene.job.status.replica_statuses[Role::worker].active, 2);
  EXPECT_EQ(created(scene.step()), "");
}

TEST(Replicas, OfAJobThatIsManagedElsewhereOrDeletedAreLeftAlone) {
  api::TrainingJob elsewhere = full_job();
  elsewhere.managed_by = "kueue.x-k8s.io/multikueue";
  api::TrainingJob deleted = full_job();
  deleted.deleting = true;
  for (const api::TrainingJob& job : {elsewhere, deleted}) {
    const Plan nothing = plan(job, {}, at(0));
    EXPECT_EQ(actions_in(nothing, job.status), "");
    EXPECT_FALSE(nothing.look_again);
  }
}

TEST(Replicas, AreNotCreatedForAJobThatIsNotAccepted) {
  struct Case {
    std::optional<std::string> conflict, invalid;
    const char* reason;
  };
  for (const Case& test : {Case{"Service mnist", {}, "NameConflict"},
                           Case{{}, "spec.containers: required", "InvalidTemplate"}}) {
    Scene scene(full_job());
    scene.view.name_conflict = test.conflict;
    scene.view.invalid_template = test.invalid;
    EXPECT_EQ(created(scene.step()), "");
    EXPECT_FALSE(scene.has("Accepted"));
    EXPECT_EQ(scene.reason("Accepted"), test.reason);
    EXPECT_THAT(scene.condition("Accepted").message,
                testing::HasSubstr(test.conflict ? *test.conflict : *test.invalid));
    EXPECT_FALSE(scene.job.status.start_time);
    scene.view.name_conflict.reset();
    scene.view.invalid_template.reset();
    EXPECT_NE(created(scene.step()), "");
    EXPECT_EQ(scene.reason("Accepted"), "Valid");
  }
}

TEST(Replicas, AreTriedWhereNobodyCouldSayWhetherTheyCanBeCreated) {
  Scene scene(full_job());
  scene.view.unchecked = "no answer";
  const Plan plan = scene.step();
  EXPECT_NE(created(plan), "");
  EXPECT_EQ(scene.reason("Accepted"), "Unknown");
  EXPECT_EQ(scene.condition("Accepted").message, "no answer");
  ASSERT_EQ(plan.events.size(), 2u);
  EXPECT_EQ(plan.events[0].reason, "NotChecked");
  EXPECT_EQ(plan.events[1].reason, "Started");
  scene.view.unchecked.reset();
  scene.view.invalid_template = "no";
  EXPECT_EQ(scene.step().events.size(), 1u);
  EXPECT_EQ(scene.reason("Accepted"), "InvalidTemplate");
}

TEST(Replicas, ScalingDownTakesTheHighestIndexAndCountsNothing) {
  Scene scene(full_job());
  scene.start();
  scene.job.replicas[Role::worker].replicas = 1;
  scene.step();
  EXPECT_EQ(scene.leaving(), "worker-1");
  scene.leave_all(1);
  scene.step();
  EXPECT_EQ(scene.job.status.restarts, 0);
  EXPECT_FALSE(scene.lives(Role::worker, 1));
  EXPECT_TRUE(scene.has("Running"));
}

TEST(Replicas, ScalingUpAgainWaitsForTheOldOneAndUsesANewAttempt) {
  Scene scene(full_job());
  scene.start();
  scene.job.replicas[Role::worker].replicas = 1;
  scene.step();
  scene.job.replicas[Role::worker].replicas = 3;
  EXPECT_EQ(created(scene.step()), "worker-2.0");
  scene.leave_all();
  EXPECT_EQ(created(scene.step()), "worker-1.1");
  EXPECT_EQ(scene.job.status.restarts, 0);
}

TEST(Replicas, OfAnOlderAttemptThatStillLiveLeaveAndHoldTheirSuccessor) {
  Scene scene(full_job());
  scene.start();
  ObservedReplica stray = scene.replica(Role::worker, 0);
  scene.fail(Role::worker, 0, 1);
  scene.step();
  stray.uid = "stray";
  std::erase_if(scene.view.replicas,
                [](const ObservedReplica& replica) { return replica.phase == Phase::pending; });
  scene.view.replicas.push_back(stray);
  EXPECT_EQ(created(scene.step()), "");
  EXPECT_EQ(scene.leaving(), "worker-0");
  scene.leave_all(1);
  EXPECT_EQ(created(scene.step()), "worker-0.1");
  EXPECT_EQ(scene.job.status.restarts, 1) << "a stray is never counted";
}

TEST(Replicas, OfALaterAttemptThanTheStatusKnowsAreAdopted) {
  Scene scene(full_job());
  scene.start();
  scene.replica(Role::worker, 0).attempt = 4;
  EXPECT_EQ(created(scene.step()), "");
  EXPECT_EQ(scene.leaving(), "");
  EXPECT_EQ(scene.record(Role::worker, 0).attempt, 4);
  scene.fail(Role::worker, 0, 1);
  EXPECT_EQ(created(scene.step()), "worker-0.5");
}

TEST(Replicas, DeletedFromOutsideAreReplacedAfterTheyEndedAndNotCounted) {
  Scene scene(full_job());
  scene.start();
  scene.replica(Role::chief).deleting = true;
  EXPECT_EQ(created(scene.step()), "");
  scene.leave_all();
  EXPECT_EQ(created(scene.step()), "chief-0.1");
  EXPECT_EQ(scene.job.status.restarts, 0);
}

TEST(Startup, InOrderWaitsForEachRoleToBeReady) {
  Scene scene(full_job().in_order());
  EXPECT_EQ(created(scene.step()), "ps-0.0");
  scene.replica(Role::ps).phase = Phase::running;
  EXPECT_EQ(created(scene.step()), "") << "running is not ready";
  scene.start_all();
  scene.replica(Role::ps).ready = true;
  EXPECT_EQ(created(scene.step()), "chief-0.0");
  scene.start_all();
  EXPECT_EQ(created(scene.step()), "worker-0.0 worker-1.0");
  scene.replica(Role::worker, 0).phase = Phase::running;
  scene.replica(Role::worker, 0).ready = true;
  EXPECT_EQ(created(scene.step()), "");
  scene.start_all();
  EXPECT_EQ(created(scene.step()), "evaluator-0.0");
}

TEST(Startup, InOrderCountsASucceededReplicaAsReady) {
  Scene scene(make_job().workers(2).evaluator().in_order());
  scene.step();
  scene.start_all();
  scene.succeed(Role::worker, 0);
  EXPECT_EQ(created(scene.step()), "evaluator-0.0");
}

TEST(Status, ShowsReadinessAndCounts) {
  Scene scene(full_job());
  scene.step();
  EXPECT_EQ(scene.reason("Running"), "ReplicasNotReady");
  EXPECT_EQ(scene.condition("Running").message, "0 of 5 replicas are ready");
  scene.now += std::chrono::seconds(1);
  scene.start_all();
  scene.step();
  EXPECT_EQ(scene.reason("Running"), "AllReplicasReady");
  EXPECT_EQ(scene.condition("Running").last_transition, scene.now);
  const auto& workers = scene.job.status.replica_statuses[Role::worker];
  EXPECT_EQ(workers, (api::ReplicaStatus{2, 2, 0, 0, 0}));
  EXPECT_EQ(scene.job.status.observed_generation, scene.job.generation);
}

TEST(Status, NamesWhatKeepsAReplicaFromBeingReady) {
  Scene scene(full_job());
  scene.start();
  scene.replica(Role::worker, 1).phase = Phase::pending;
  scene.replica(Role::worker, 1).ready = false;
  scene.replica(Role::worker, 1).reason = "ImagePullBackOff";
  scene.step();
  EXPECT_EQ(scene.condition("Running").message,
            "4 of 5 replicas are ready; worker-1: ImagePullBackOff");
  scene.replica(Role::worker, 1).explanation = "Back-off pulling image \"a:b\"";
  scene.step();
  EXPECT_EQ(
      scene.condition("Running").message,
      "4 of 5 replicas are ready; worker-1: ImagePullBackOff: Back-off pulling image \"a:b\"");
}

TEST(Status, KeepsTheLastProgress) {
  Scene scene(full_job());
  scene.view.progress = Json{{"step", 7}};
  scene.start();
  scene.view.progress = nullptr;
  scene.step();
  EXPECT_EQ(scene.job.status.progress, (Json{{"step", 7}}));
}

TEST(Status, HasASpeedAndATimeToGoOnlyWhileTheJobTrains) {
  const Json progress = {{"step", 7}, {"examplesPerSecond", 8.5}, {"etaSeconds", 9}};
  const auto running = [&progress] {
    Scene scene(full_job());
    scene.view.progress = progress;
    scene.start();
    EXPECT_EQ(scene.job.status.progress, progress);
    return scene;
  };
  Scene suspended = running();
  suspended.job.suspend = true;
  suspended.step();
  EXPECT_EQ(suspended.job.status.progress, (Json{{"step", 7}}));
  Scene failed = running();
  failed.fail(Role::worker, 0, 65);
  failed.step();
  ASSERT_TRUE(failed.has("FailureTarget"));
  EXPECT_EQ(failed.job.status.progress, (Json{{"step", 7}}));
  Scene succeeded = running();
  succeeded.succeed(Role::chief);
  succeeded.view.progress = nullptr;
  succeeded.step();
  ASSERT_TRUE(succeeded.has("SuccessCriteriaMet"));
  EXPECT_EQ(succeeded.job.status.progress, (Json{{"step", 7}}));
}

TEST(Status, MessagesAreSafeWhateverAReplicaPrinted) {
  Scene scene(full_job());
  scene.start();
  scene.fail(Role::worker, 0, 65, "", "bad \xff\xc3 bytes\x1b[31m " + std::string(5000, 'x'));
  scene.step();
  const std::string& message = scene.condition("FailureTarget").message;
  EXPECT_LT(message.size(), 1000u);
  EXPECT_NO_THROW(Json(message).dump());
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
}

TEST(Status, EveryEventIsToldOnce) {
  Scene scene(full_job());
  scene.start();
  scene.fail(Role::worker, 0, 1);
  const Plan plan = scene.step();
  ASSERT_EQ(plan.events.size(), 1u);
  EXPECT_EQ(plan.events[0].kind, Event::Kind::warning);
  EXPECT_EQ(plan.events[0].reason, "ReplicaFailed");
  EXPECT_TRUE(scene.step_after(1).events.empty());
}

}  // namespace
}  // namespace muster::plan
