#include <gmock/gmock.h>

#include "tests/unit/operator/plan/scene.h"

namespace muster::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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

// A job that is older than these folders keeps the mount itself.
TEST(Milestones, ANewJobThatTrainsGetsAFolderOfItsOwn) {
  Scene own_programs(full_job().own_image());
  own_programs.step();
  EXPECT_FALSE(own_programs.job.status.storage_folder);

  const api::TrainingJob job = full_job();
  Scene scene(job);
  scene.step();
  EXPECT_EQ(scene.job.status.storage_folder, job.name_space + "-" + job.name);
  EXPECT_EQ(folder_of(scene.job), job.name_space + "-" + job.name);

  Scene older(job);
  older.step();
  older.job.status.storage_folder.reset();
  older.start();
  EXPECT_FALSE(older.job.status.storage_folder);
  EXPECT_EQ(folder_of(older.job), ".");
}

}  // namespace
}  // namespace muster::plan
