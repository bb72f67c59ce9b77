#include "operator/plan/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/plan/replicas.h"
#include "tests/unit/operator/plan/scene.h"

namespace muster::plan {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> told(const Plan& plan, const std::string& reason) {
  std::vector<std::string> messages;
  for (const Event& event : plan.events) {
    if (event.reason == reason) messages.push_back(event.message);
  }
  return messages;
}

Scene pending() {
  Scene scene(make_job().chief().workers(2));
  scene.step();
  return scene;
}

void obstruct(Scene& scene, const std::string& reason, const std::string& words) {
  scene.replica(Role::worker, 1).reason = reason;
  scene.replica(Role::worker, 1).explanation = words;
}

TEST(Report, TellsWhatKeepsAReplicaFromBeingReadyOnceForEachCause) {
  Scene scene = pending();
  EXPECT_EQ(scene.job.status.cause, "");
  obstruct(scene, "Unschedulable", "0/2 nodes are available");
  const std::string first = "worker-1: Unschedulable: 0/2 nodes are available";
  EXPECT_THAT(told(scene.step(), "ReplicaPending"), ElementsAre(first));
  EXPECT_EQ(scene.job.status.cause, first);
  EXPECT_EQ(scene.condition("Running").message, "0 of 3 replicas are ready; " + first);
  EXPECT_THAT(told(scene.step(), "ReplicaPending"), IsEmpty());
  obstruct(scene, "FailedMount", "configmap \"a\" not found");
  EXPECT_THAT(told(scene.step(), "ReplicaPending"),
              ElementsAre("worker-1: FailedMount: configmap \"a\" not found"));
  obstruct(scene, "", "");
  scene.start();
  EXPECT_EQ(scene.job.status.cause, "");
}

TEST(Report, TellsOfEachRequestForACheckpointOnceThatItIsMet) {
  Scene scene(make_job().chief().workers(1));
  scene.start();
  const auto meet = [&](const std::string& request, int step) {
    scene.view.progress["requestedCheckpoint"] = {
        {"request", request}, {"step", step}, {"checkpoint", "/muster/ckpt"}};
    return told(scene.step(), "CheckpointTaken");
  };
  scene.view.progress = {{"step", 7}};
  EXPECT_THAT(told(scene.step(), "CheckpointTaken"), IsEmpty());
  EXPECT_THAT(meet("now\n", 8),
              ElementsAre("the checkpoint of step 8 was taken as asked for (\"now?\"): "
                          "/muster/ckpt"));
  EXPECT_THAT(meet("now\n", 9), IsEmpty()) << "a leader that was replaced names a later one";
  EXPECT_EQ(scene.job.status.progress["requestedCheckpoint"]["step"], 9);
  EXPECT_THAT(meet("again", 9), testing::SizeIs(1));
}

TEST(Report, KeepsTheWordsThatSayWhyAnImageCannotBePulled) {
  Scene scene = pending();
  obstruct(scene, "ImagePullBackOff", "no such manifest");
  scene.step();
  obstruct(scene, "ImagePullBackOff", "Back-off pulling image");
  EXPECT_THAT(told(scene.step(), "ReplicaPending"), IsEmpty());
  EXPECT_EQ(scene.job.status.cause, "worker-1: ImagePullBackOff: no such manifest");
}

TEST(Report, SaysWhichQuotaHoldsAJobUpAndOnceWhateverItsNumbers) {
  Scene scene(make_job().chief().workers(2));
  scene.view.quota = "compute: requested: pods=1, used: pods=2";
  EXPECT_THAT(told(scene.step(), "QuotaExceeded"),
              ElementsAre("quota compute holds the job up: requested: pods=1, used: pods=2"));
  EXPECT_EQ(scene.reason("Accepted"), "Valid");
  EXPECT_EQ(scene.reason("Running"), "QuotaExceeded");
  scene.view.quota = "compute: requested: pods=1, used: pods=1";
  EXPECT_THAT(told(scene.step(), "QuotaExceeded"), IsEmpty());
  EXPECT_EQ(scene.job.status.cause,
            "quota compute holds the job up: requested: pods=1, used: pods=1");
  scene.view.quota = "memory: must specify limits";
  EXPECT_THAT(told(scene.step(), "QuotaExceeded"),
              ElementsAre("quota memory holds the job up: must specify limits"));
  scene.view.quota.reset();
  scene.start();
  EXPECT_EQ(scene.job.status.cause, "");
  EXPECT_EQ(scene.reason("Running"), "AllReplicasReady");
}

TEST(Report, TellsEachRefusalWhoseWordsAreOthers) {
  Scene scene(make_job().chief());
  for (const char* refusal : {"webhook a denies it", "webhook b denies it"}) {
    scene.view.unchecked = refusal;
    EXPECT_THAT(told(scene.step(), "NotChecked"), ElementsAre(refusal));
    EXPECT_EQ(scene.job.status.cause, refusal);
    EXPECT_THAT(told(scene.step(), "NotChecked"), IsEmpty());
  }
}

TEST(Report, LeavesNothingUnknownInAJobThatHasEnded) {
  Scene scene(make_job().chief());
  scene.start();
  scene.view.unchecked = "no answer";
  scene.step();
  EXPECT_EQ(scene.reason("Accepted"), "Unknown");
  scene.succeed(Role::chief);
  scene.step();
  EXPECT_TRUE(scene.has("Succeeded"));
  EXPECT_EQ(scene.reason("Accepted"), "Valid");
  EXPECT_EQ(scene.job.status.cause, "");

  Scene refused(make_job().chief().deadline(10));
  refused.view.unchecked = "no answer";
  refused.step();
  refused.view.replicas.clear();
  refused.step_after(20);
  refused.view.replicas.clear();
  refused.step_after(30);
  ASSERT_TRUE(refused.has("Failed"));
  EXPECT_EQ(refused.reason("Accepted"), "Refused");
  EXPECT_EQ(refused.condition("Accepted").message, "no answer");
}

TEST(Report, KnowsWhetherAReplicaIsToBeCreated) {
  Scene scene(make_job().chief().workers(2));
  EXPECT_TRUE(lacks_replicas(scene.job, scene.view));
  scene.start();
  EXPECT_FALSE(lacks_replicas(scene.job, scene.view));
  scene.fail(Role::worker, 1, 1);
  EXPECT_TRUE(lacks_replicas(scene.job, scene.view));
  scene.start();
  scene.succeed(Role::chief);
  scene.view.replicas.clear();
  EXPECT_TRUE(lacks_replicas(scene.job, scene.view));
}

TEST(Cause, OfAJobThatHasFailedIsWhyItHas) {
  Scene scene(make_job().workers(1).backoff_limit(0));
  scene.start();
  scene.fail(Role::worker, 0, 3, "", "I fail");
  const Plan plan = scene.step();
  EXPECT_THAT(plan.status.cause, testing::HasSubstr("worker-0 ended with exit code 3"));
  for (const Event& event : plan.events) EXPECT_NE(event.reason, "ReplicaPending");
}

constexpr const char* kSince = "2026-01-02T03:04:05Z";

Json stall(const std::string& replica, const std::string& doing, bool storage = false) {
  return {{"replica", replica}, {"doing", doing}, {"since", kSince}, {"storage", storage}};
}

std::vector<std::string> warned(const Plan& plan) {
  std::vector<std::string> reasons;
  for (const Event& event : plan.events)
    if (event.kind == Event::Kind::warning) reasons.push_back(event.reason + ": " + event.message);
  return reasons;
}

Scene running() {
  Scene scene(make_job().chief().workers(2));
  scene.start();
  scene.view.progress = {{"step", 7}};
  scene.step();
  return scene;
}

void stands_still(Scene& scene, const Json& stalls) {
  scene.view.progress["stalled"] = stalls;
}

TEST(Stalls, AJobInWhichAllGoesOnHasNoSuchCondition) {
  Scene scene = running();
  EXPECT_EQ(scene.job.status.find("Stalled"), nullptr);
  stands_still(scene, Json::array());
  scene.step();
  EXPECT_EQ(scene.job.status.find("Stalled"), nullptr);
}

TEST(Stalls, AReplicaThatHangsIsNamedOnceAndUntilItGoesOn) {
  Scene scene = running();
  stands_still(scene, Json::array({stall("worker-1", "taking a step")}));
  const std::string message =
      std::string("worker-1 has given no sign of life since ") + kSince + ": taking a step";
  EXPECT_THAT(warned(scene.step()), ElementsAre("ReplicaHangs: " + message));
  EXPECT_TRUE(scene.has("Stalled"));
  EXPECT_EQ(scene.condition("Stalled").message, message);
  EXPECT_THAT(warned(scene.step_after(10)), IsEmpty());
  scene.view.progress.erase("stalled");
  scene.step();
  EXPECT_FALSE(scene.has("Stalled"));
  EXPECT_EQ(scene.reason("Stalled"), "GoesOn");
}

TEST(Stalls, StorageIsNamedBeforeWhatMayWaitForIt) {
  Scene scene = running();
  stands_still(scene, Json::array({stall("chief-0", "evaluating"),
                                   stall("worker-1", "reading /data/a.jpg", true)}));
  scene.step();
  EXPECT_EQ(scene.reason("Stalled"), "StorageHangs");
  EXPECT_EQ(scene.condition("Stalled").message,
            std::string("worker-1 waits for its storage since ") + kSince +
                ": reading /data/a.jpg; and 1 more");
}

TEST(Stalls, AFullDiskIsTheCauseThatIsShownAndOneEvent) {
  Scene scene = running();
  stands_still(scene, Json::array({stall("chief-0", "no checkpoint of step 7: disk full", true)}));
  const Plan plan = scene.step();
  const std::string message = std::string("chief-0 waits for its storage since ") + kSince +
                              ": no checkpoint of step 7: disk full";
  EXPECT_EQ(scene.job.status.cause, message);
  EXPECT_THAT(warned(plan), ElementsAre("StorageHangs: " + message));
  EXPECT_THAT(warned(scene.step_after(10)), IsEmpty());
  scene.view.progress.erase("stalled");
  scene.step();
  EXPECT_EQ(scene.job.status.cause, "");
}

TEST(Stalls, EndWithTheJob) {
  Scene scene = running();
  stands_still(scene, Json::array({stall("worker-1", "taking a step")}));
  scene.step();
  scene.job.suspend = true;
  scene.step();
  EXPECT_FALSE(scene.has("Stalled"));
}

TEST(Stalls, AnswersOfAnyFormMakeNoCondition) {
  for (const Json& odd : {Json(7), Json("worker-1"), Json::object()}) {
    Scene scene = running();
    stands_still(scene, odd);
    scene.step();
    EXPECT_FALSE(scene.has("Stalled")) << odd;
  }
  Scene scene = running();
  stands_still(scene, Json::array({Json::object()}));
  scene.step();
  EXPECT_EQ(scene.condition("Stalled").message, "? has given no sign of life since ?: ?");
}

std::vector<std::string> told(const Plan& plan) {
  std::vector<std::string> events;
  for (const Event& event : plan.events) {
    const std::string kind = event.kind == Event::Kind::warning ? "warning " : "";
    events.push_back(kind + event.reason + ": " + event.message);
  }
  return events;
}

TEST(Milestones, ThatAJobStartsAndRunsIsToldOnce) {
  Scene scene(full_job());
  EXPECT_THAT(
      told(scene.step()),
      ElementsAre(
          "Started: the job is started with 5 replicas: ps 1, chief 1, worker 2, evaluator 1"));
  EXPECT_THAT(told(scene.step()), IsEmpty());
  scene.start_all();
  EXPECT_THAT(told(scene.step()), ElementsAre("Running: all 5 replicas are ready"));
  EXPECT_THAT(told(scene.step_after(1)), IsEmpty());
}

TEST(Milestones, AJobOfOneReplica) {
  Scene scene(make_job().workers(1));
  EXPECT_THAT(told(scene.step()),
              ElementsAre("Started: the job is started with 1 replica: worker 1"));
  scene.start_all();
  EXPECT_THAT(told(scene.step()), ElementsAre("Running: the replica is ready"));
}

TEST(Milestones, TheStoryOfARestart) {
  Scene scene(full_job());
  scene.start();
  scene.fail(Role::worker, 0, 1);
  EXPECT_EQ(told(scene.step()).size(), 1u);
  scene.now += std::chrono::seconds(60);
  EXPECT_THAT(told(scene.step()), IsEmpty()) << "it is created anew, in the same run";
  scene.start_all();
  EXPECT_THAT(told(scene.step()), ElementsAre("Running: all 5 replicas are ready"));
}

TEST(Milestones, TheStoryOfASuspension) {
  Scene scene(full_job().suspended());
  EXPECT_THAT(told(scene.step()), ElementsAre("Suspended: the job is suspended: no replica runs"));
  scene.job.suspend = false;
  const auto events = told(scene.step());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0], "Resumed: the job was resumed");
  EXPECT_THAT(events[1], testing::StartsWith("Started: "));
}

TEST(Milestones, AJobThatIsNotAcceptedIsNotStarted) {
  Scene scene(full_job());
  scene.view.invalid_template = "no image";
  EXPECT_THAT(told(scene.step()), ElementsAre("warning InvalidTemplate: no image"));
}

TEST(Milestones, WhatTrainingGoesOnFromIsToldWhenItChanges) {
  Scene scene(full_job());
  scene.start();
  scene.view.progress = {{"step", 40}, {"resumed", "ckpt-40-g1 with another seed"}};
  EXPECT_THAT(told(scene.step()), ElementsAre("GoesOn: ckpt-40-g1 with another seed"));
  scene.view.progress["step"] = 50;
  EXPECT_THAT(told(scene.step_after(10)), IsEmpty());
  scene.view.progress["resumed"] = "ckpt-60-g2 with another seed";
  EXPECT_THAT(told(scene.step_after(10)), ElementsAre("GoesOn: ckpt-60-g2 with another seed"));
}

}  // namespace
}  // namespace muster::plan
