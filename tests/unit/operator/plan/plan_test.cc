#include "operator/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/plan/builders.h"
#include "tests/unit/operator/plan/scene.h"

namespace muster::plan {
namespace {

std::string keys_of(const Scene& scene) {
  const auto& security = scene.job.status.security;
  if (!security) return "nothing to know";
  return security->keys.empty() ? "everybody is believed" : security->keys;
}

Scene scene_of(const api::TrainingJob& job, const std::string& nonce = "a") {
  Scene scene(job);
  scene.view.nonce = nonce;
  return scene;
}

TEST(Keys, AreChosenOnceForReplicasThatTrainTogether) {
  Scene scene = scene_of(full_job());
  scene.step();
  const std::string chosen = scene.job.name + "-tls-a";
  EXPECT_EQ(keys_of(scene), chosen);
  scene.view.nonce = "b";
  scene.start();
  EXPECT_EQ(keys_of(scene), chosen);
}

TEST(Keys, AreNotForWhoIsAloneOrRunsItsOwnProgram) {
  Scene own = scene_of(full_job().own_image());
  own.step();
  EXPECT_EQ(keys_of(own), "nothing to know");
  api::TrainingJob alone = full_job();
  for (const Role role : {Role::ps, Role::worker, Role::evaluator}) alone.replicas.erase(role);
  Scene scene = scene_of(alone);
  scene.step();
  EXPECT_EQ(keys_of(scene), "nothing to know");
}

TEST(Keys, AreNotWhereTheManifestSaysSo) {
  api::TrainingJob job = full_job();
  job.transport = api::Transport::none;
  Scene scene = scene_of(job);
  scene.step();
  EXPECT_EQ(keys_of(scene), "everybody is believed");
}

// It was created by an operator that knew no keys.
TEST(Keys, AJobThatRunsInPlaintextGoesOnSo) {
  Scene scene = scene_of(full_job());
  scene.start();
  scene.job.status.security.reset();
  scene.step_after(10);
  EXPECT_EQ(keys_of(scene), "nothing to know");
}

TEST(Keys, AreNewAfterARestartOfTheJobButNotAfterASuspension) {
  Scene scene = scene_of(full_job());
  scene.start();
  const std::string first = keys_of(scene);
  scene.view.nonce = "b";
  scene.job.status.run = 1;  // resumed
  scene.step_after(10);
  EXPECT_EQ(keys_of(scene), first);
  scene.job.status.run = scene.job.status.restart_run = 2;
  scene.step_after(10);
  EXPECT_EQ(keys_of(scene), scene.job.name + "-tls-b");
}

// A job that is older than these folders keeps the mount itself.
TEST(Folder, ANewJobThatTrainsGetsAFolderOfItsOwn) {
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
