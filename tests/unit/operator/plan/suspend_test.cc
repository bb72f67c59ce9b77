#include "operator/api/overview.h"
#include "tests/unit/operator/plan/scene.h"

namespace muster::plan {
namespace {

Scene running(const JobBuilder& builder) {
  Scene scene(builder);
  scene.start();
  return scene;
}

void suspend_fully(Scene& scene, int code = 143) {
  scene.job.suspend = true;
  scene.step();
  scene.leave_all(code);
  scene.step();
  scene.leave_all(143);
  scene.step();
  EXPECT_TRUE(scene.has("Suspended"));
}

TEST(Suspend, MembersStopFirstPsAfterThem) {
  Scene scene = running(full_job());
  scene.job.suspend = true;
  scene.step();
  EXPECT_EQ(scene.leaving(), "chief-0 worker-0 worker-1 evaluator-0");
  EXPECT_FALSE(scene.has("Suspended"));
  EXPECT_EQ(scene.reason("Suspended"), "Suspending");
  scene.leave_all();
  scene.step();
  EXPECT_EQ(scene.leaving(), "ps-0");
  EXPECT_FALSE(scene.has("Suspended"));
  scene.leave_all();
  scene.step();
  EXPECT_TRUE(scene.has("Suspended"));
  EXPECT_EQ(scene.reason("Running"), "Suspended");
  EXPECT_EQ(scene.job.status.restarts, 0);
}

TEST(Suspend, AJobCreatedSuspendedHasNoReplicasAndNoStartTime) {
  Scene scene(full_job().suspended());
  EXPECT_EQ(created(scene.step()), "");
  EXPECT_TRUE(scene.has("Suspended"));
  EXPECT_FALSE(scene.job.status.start_time);
}

TEST(Suspend, ResumingStartsANewRunAndResetsStartTime) {
  Scene scene = running(full_job().deadline(100));
  scene.now += std::chrono::seconds(90);
  suspend_fully(scene);
  scene.now += std::chrono::hours(5);
  scene.step();
  EXPECT_FALSE(scene.has("FailureTarget")) << "a suspended job has no deadline";
  scene.job.suspend = false;
  const Plan plan = scene.step();
  EXPECT_EQ(created(plan), "ps-0.1 chief-0.1 worker-0.1 worker-1.1 evaluator-0.1");
  EXPECT_EQ(scene.job.status.start_time, scene.now);
  EXPECT_EQ(plan.look_again, scene.now + std::chrono::seconds(100));
  EXPECT_EQ(scene.job.status.run, 1);
  EXPECT_FALSE(scene.has("Suspended"));
  EXPECT_EQ(scene.reason("Suspended"), "Resumed");
}

TEST(Suspend, ResumingBeforeItIsDoneWaitsForTheOldRunToGo) {
  Scene scene = running(full_job());
  scene.job.suspend = true;
  scene.step();
  scene.job.suspend = false;
  EXPECT_EQ(created(scene.step()), "");
  scene.leave_all(1);
  scene.step();
  EXPECT_EQ(scene.leaving(), "ps-0");
  scene.leave_all();
  EXPECT_EQ(created(scene.step()), "ps-0.1 chief-0.1 worker-0.1 worker-1.1 evaluator-0.1");
  EXPECT_EQ(scene.job.status.restarts, 0);
}

TEST(Suspend, LeavingWithAnyCodeIsNotAFailure) {
  for (int code : {1, 65, 137, 143}) {
    Scene scene = running(full_job());
    suspend_fully(scene, code);
    EXPECT_EQ(scene.job.status.restarts, 0) << code;
    EXPECT_FALSE(scene.has("FailureTarget")) << code;
  }
}

TEST(Suspend, ACrashThatWasNotAskedForCountsStill) {
  Scene scene = running(full_job());
  scene.fail(Role::worker, 0, 1);
  scene.job.suspend = true;
  EXPECT_EQ(created(scene.step()), "");
  EXPECT_EQ(scene.job.status.restarts, 1);
}

TEST(Suspend, ASuccessIsRememberedAndDecidesOnResuming) {
  Scene scene = running(full_job());
  suspend_fully(scene, 0);
  EXPECT_FALSE(scene.has("SuccessCriteriaMet"));
  scene.job.suspend = false;
  EXPECT_EQ(created(scene.step()), "") << "also the evaluator ended with 0";
  EXPECT_TRUE(scene.has("SuccessCriteriaMet"));
}

TEST(Suspend, AnImageThatAnswersTheRequestToLeaveWithZeroHasNotSucceeded) {
  Scene scene = running(full_job().own_image());
  suspend_fully(scene, 0);
  scene.job.suspend = false;
  EXPECT_EQ(created(scene.step()), "ps-0.1 chief-0.1 worker-0.1 worker-1.1 evaluator-0.1");
}

TEST(Suspend, WorkersThatSucceededBeforeAreNotRunAgain) {
  Scene scene = running(full_job().own_image());
  scene.succeed(Role::worker, 1);
  scene.step();
  suspend_fully(scene);
  scene.job.suspend = false;
  EXPECT_EQ(created(scene.step()), "ps-0.1 chief-0.1 worker-0.1 evaluator-0.1");
}

TEST(Suspend, IsTooLateForADecidedJob) {
  Scene scene = running(full_job());
  scene.succeed(Role::chief);
  scene.step();
  scene.job.suspend = true;
  scene.step();
  EXPECT_EQ(scene.job.status.find("Suspended"), nullptr);
  EXPECT_TRUE(scene.lives(Role::evaluator)) << "it evaluates the final checkpoint";
}

TEST(Suspend, AFailureWhileSuspendingEndsTheSuspension) {
  Scene scene = running(full_job());
  scene.job.suspend = true;
  scene.step();
  ObservedReplica& worker = scene.replica(Role::worker, 0);
  worker.deleting = false;  // the request was lost, and it ended by itself
  scene.fail(Role::worker, 0, 65);
  scene.step();
  EXPECT_TRUE(scene.has("FailureTarget"));
  scene.leave_all();
  scene.step();
  scene.leave_all();
  scene.step();
  EXPECT_TRUE(scene.has("Failed"));
  EXPECT_FALSE(scene.has("Suspended"));
}

TEST(Suspend, AQueueHoldsAJobAsSuspendDoes) {
  Scene scene(full_job());
  scene.job.hold = api::Hold{"Queued", "the job waits in queue a"};
  EXPECT_EQ(created(scene.step()), "");
  EXPECT_TRUE(scene.has("Suspended"));
  EXPECT_EQ(scene.reason("Suspended"), "Queued");
  EXPECT_EQ(api::state_word(scene.job.status), "Queued");
  EXPECT_FALSE(scene.job.status.start_time);
  scene.job.hold.reset();
  EXPECT_EQ(created(scene.step()), "ps-0.0 chief-0.0 worker-0.0 worker-1.0 evaluator-0.0");
  EXPECT_EQ(scene.reason("Suspended"), "Admitted");
  scene.start();

  scene.job.hold = api::Hold{"Preempted", "queue a wants its quota back"};
  scene.step();
  EXPECT_EQ(scene.leaving(), "chief-0 worker-0 worker-1 evaluator-0");
  EXPECT_EQ(api::state_word(scene.job.status), "Suspending");
  scene.leave_all();
  scene.step();
  scene.leave_all();
  scene.step();
  EXPECT_EQ(scene.reason("Suspended"), "Preempted");
  EXPECT_EQ(scene.job.status.restarts, 0);
}

TEST(Suspend, AQueuesWordsFollowTheQueueAndAreTold) {
  Scene scene(full_job());
  scene.job.hold = api::Hold{"Queued", "no cpu"};
  EXPECT_EQ(scene.step().events.size(), 1u);
  scene.job.hold->message = "no memory";
  EXPECT_TRUE(scene.step().events.empty()) << "only the reason is news";
  EXPECT_EQ(scene.job.status.find("Suspended")->message, "no memory");
  scene.job.hold->reason = "Deactivated";
  EXPECT_EQ(scene.step().events.size(), 1u);
}

TEST(Suspend, WhoSuspendsAJobThatWaitsIsToldThatItIsSuspended) {
  Scene scene(full_job().suspended());
  scene.job.hold = api::Hold{"Queued", "no cpu"};
  scene.step();
  EXPECT_EQ(scene.reason("Suspended"), "Suspended");
}

}  // namespace
}  // namespace muster::plan
