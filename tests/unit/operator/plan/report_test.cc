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

}  // namespace
}  // namespace muster::plan
