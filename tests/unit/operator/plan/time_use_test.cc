#include "operator/plan/time_use.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/plan/scene.h"

namespace muster::plan {
namespace {

TimeUse use_of(Scene& scene) {
  return scene.step().use;
}

TEST(UseOfTime, FollowsAReplicaUntilItRuns) {
  Scene scene(make_job().chief());
  EXPECT_EQ(use_of(scene), TimeUse::starting);
  ObservedReplica& chief = scene.replica(Role::chief);
  chief.reason = "Unschedulable";
  EXPECT_EQ(use_of(scene), TimeUse::unschedulable);
  chief.reason = "SchedulingGated";
  EXPECT_EQ(use_of(scene), TimeUse::queued);
  chief.reason = "";
  chief.node = "node-1";
  EXPECT_EQ(use_of(scene), TimeUse::pulling);
  chief.reason = "ImagePullBackOff";
  EXPECT_EQ(use_of(scene), TimeUse::pulling);
  chief.reason = "";
  chief.started = scene.now;
  EXPECT_EQ(use_of(scene), TimeUse::starting);
  scene.start_all();
  EXPECT_EQ(use_of(scene), TimeUse::starting);  // what it then does, it tells itself
}

TEST(UseOfTime, AnotherImageComputesWhileAllReplicasAreReady) {
  Scene scene(make_job().own_image().workers(2).decided_by(api::DecidedBy::all_workers));
  scene.start();
  EXPECT_EQ(use_of(scene), TimeUse::computing);
  scene.fail(Role::worker, 1, 137);
  EXPECT_EQ(use_of(scene), TimeUse::lost);
  scene.start();
  EXPECT_EQ(use_of(scene), TimeUse::computing);
  scene.succeed(Role::worker, 0);
  EXPECT_EQ(use_of(scene), TimeUse::computing);
  scene.succeed(Role::worker, 1);
  EXPECT_EQ(use_of(scene), TimeUse::stopping);
}

TEST(UseOfTime, OfReplicasTheFirstObstacleCounts) {
  Scene scene(make_job().chief().workers(2));
  scene.step();
  scene.replica(Role::chief).node = "node-1";
  scene.replica(Role::worker, 1).reason = "Unschedulable";
  EXPECT_EQ(use_of(scene), TimeUse::unschedulable);
}

TEST(UseOfTime, AQueueAQuotaAndASuspensionHaveTheirNames) {
  Scene scene(make_job().chief());
  scene.job.hold = api::Hold{"Queued", "it waits in queue research"};
  EXPECT_EQ(use_of(scene), TimeUse::queued);
  scene.job.hold.reset();
  scene.view.quota = "compute: requested: pods=1, used: pods=4";
  EXPECT_EQ(use_of(scene), TimeUse::queued);
  scene.view.quota.reset();
  scene.start();
  scene.job.hold = api::Hold{"Preempted", "another job needs the room"};
  EXPECT_EQ(use_of(scene), TimeUse::suspended);
  scene.job.hold.reset();
  scene.job.suspend = true;
  EXPECT_EQ(use_of(scene), TimeUse::suspended);
}

TEST(UseOfTime, AReplicaThatHasTrainedAndIsNotReadyIsLost) {
  Scene scene(make_job().chief().workers(1));
  scene.start();
  scene.job.status.progress = {{"step", 28}};
  EXPECT_EQ(use_of(scene), TimeUse::starting);
  scene.replica(Role::worker).ready = false;
  EXPECT_EQ(use_of(scene), TimeUse::lost);
}

TEST(UseOfTime, ATrainingDoesNotWaitForItsEvaluator) {
  Scene scene(make_job().chief().evaluator());
  scene.start();
  scene.job.status.progress = {{"step", 28}};
  scene.replica(Role::evaluator).ready = false;
  EXPECT_EQ(use_of(scene), TimeUse::starting);
}

TEST(UseOfTime, PodsThatCannotBeMadeAreNotPlaced) {
  Scene scene(make_job().chief());
  scene.view.unchecked = "error looking up service account lab/nobody";
  EXPECT_EQ(use_of(scene), TimeUse::unschedulable);
}

TEST(UseOfTime, WhatTheClusterDoesNotTakeIsNotPlaced) {
  Scene scene(make_job().chief());
  scene.view.invalid_template = "spec.containers: Required value";
  EXPECT_EQ(use_of(scene), TimeUse::unschedulable);
}

}  // namespace
}  // namespace muster::plan
