#include "operator/plan/retry.h"

#include "tests/unit/operator/plan/scene.h"

namespace muster::plan {
namespace {

// Plans until everybody who is asked to leave has left.
void wind_up(Scene& scene) {
  for (int i = 0; i < 3; ++i) {
    scene.step();
    scene.leave_all();
  }
}

Scene failed(const JobBuilder& builder, int code) {
  Scene scene(builder);
  scene.start();
  scene.fail(Role::chief, 0, code);
  wind_up(scene);
  EXPECT_TRUE(scene.has("Failed"));
  return scene;
}

TEST(Retry, AFailedJobGoesOnInANewRunWithTheNextAttempts) {
  Scene scene = failed(full_job(), 90);
  scene.now += std::chrono::hours(1);
  scene.job.status = retry(scene.job);
  const Plan plan = scene.step();
  EXPECT_EQ(created(plan), "ps-0.1 chief-0.1 worker-0.1 worker-1.1 evaluator-0.1");
  EXPECT_EQ(scene.job.status.run, 1);
  EXPECT_EQ(scene.job.status.start_time, scene.now);
  for (const char* type : {"FailureTarget", "Failed", "Finished"}) EXPECT_FALSE(scene.has(type));
  scene.start_all();
  scene.step();
  EXPECT_TRUE(scene.has("Running"));
  scene.succeed(Role::chief);
  scene.step();
  EXPECT_TRUE(scene.has("SuccessCriteriaMet"));
}

TEST(Retry, TheLimitBeginsAnewAndRestartsOfEachReplicaCountOn) {
  Scene scene(full_job().backoff_limit(1));
  scene.start();
  scene.fail(Role::worker, 0, 1);
  scene.step();
  scene.start_all();
  scene.fail(Role::worker, 0, 1);
  wind_up(scene);
  ASSERT_EQ(scene.reason("Failed"), "BackoffLimitExceeded");
  scene.job.status = retry(scene.job);
  scene.step();
  scene.start_all();
  scene.fail(Role::worker, 0, 1);
  scene.step();
  EXPECT_FALSE(scene.has("FailureTarget"));
  EXPECT_EQ(scene.record(Role::worker).restarts, 2);
  EXPECT_EQ(scene.job.status.restarts, 1);
}

TEST(Retry, GivesTheWholeDeadlineAgain) {
  Scene scene(full_job().deadline(100));
  scene.start();
  scene.now += std::chrono::seconds(100);
  wind_up(scene);
  ASSERT_EQ(scene.reason("Failed"), "DeadlineExceeded");
  scene.job.status = retry(scene.job);
  EXPECT_EQ(scene.step().look_again, scene.now + std::chrono::seconds(100));
  EXPECT_FALSE(scene.has("FailureTarget"));
}

TEST(Retry, WorkersOfTheTrainerAreNeededAgainThoseOfAnImageStayDone) {
  for (const bool trains : {true, false}) {
    Scene scene(trains ? full_job() : full_job().own_image().never_restart(Role::chief));
    scene.start();
    scene.succeed(Role::worker, 1);
    scene.step();
    scene.fail(Role::chief, 0, 90);
    for (int i = 0; i < 3; ++i) {
      scene.step();
      scene.leave_all();
    }
    ASSERT_TRUE(scene.has("Failed"));
    scene.job.status = retry(scene.job);
    EXPECT_EQ(created(scene.step()), trains ? "ps-0.1 chief-0.1 worker-0.1 worker-1.1 evaluator-0.1"
                                            : "ps-0.1 chief-0.1 worker-0.1 evaluator-0.1");
  }
}

TEST(Retry, BeforeItHasEndedWaitsForTheOldRunToGo) {
  Scene scene(full_job());
  scene.start();
  scene.fail(Role::chief, 0, 90);
  scene.step();
  ASSERT_TRUE(scene.has("FailureTarget"));
  scene.job.status = retry(scene.job);
  EXPECT_EQ(created(scene.step()), "");
  EXPECT_EQ(scene.leaving(), "worker-0 worker-1 evaluator-0");
  scene.leave_all();
  EXPECT_EQ(created(scene.step()), "");
  EXPECT_EQ(scene.leaving(), "ps-0");
  scene.leave_all();
  EXPECT_EQ(created(scene.step()), "ps-0.1 chief-0.1 worker-0.1 worker-1.1 evaluator-0.1");
}

// Ends all replicas that train or evaluate, and with them the job.
void succeed(Scene& scene) {
  for (const Role role : {Role::chief, Role::worker, Role::evaluator}) {
    const auto spec = scene.job.replicas.find(role);
    for (int i = 0; spec != scene.job.replicas.end() && i < spec->second.replicas; ++i)
      scene.succeed(role, i);
  }
  wind_up(scene);
  EXPECT_TRUE(scene.has("Succeeded"));
}

Json epochs(int count) {
  return {{"epochs", count}};
}

Scene succeeded(const JobBuilder& builder) {
  Scene scene(builder);
  scene.start();
  scene.view.results = {{"step", 100}};
  scene.view.final_checkpoint_evaluated = true;
  succeed(scene);
  EXPECT_FALSE(scene.job.status.results.is_null());
  return scene;
}

TEST(TrainOn, ASucceededJobBeginsANewRunOfAllItsReplicas) {
  Scene scene = succeeded(full_job());
  scene.job.status = train_on(scene.job);
  for (const char* type : {"SuccessCriteriaMet", "Succeeded", "Finished"})
    EXPECT_FALSE(scene.has(type)) << type;
  EXPECT_TRUE(scene.job.status.results.is_null());
  EXPECT_EQ(created(scene.step()), "ps-0.1 chief-0.1 worker-0.1 worker-1.1 evaluator-0.1");
  EXPECT_EQ(scene.job.status.run, 1);
  scene.start_all();
  scene.step();
  EXPECT_TRUE(scene.has("Running"));
  scene.succeed(Role::chief);
  scene.step();
  EXPECT_TRUE(scene.has("SuccessCriteriaMet"));
}

TEST(TrainOn, FollowsWhenTheSpecOfASucceededJobAsksForMore) {
  Scene scene = succeeded(full_job());
  EXPECT_EQ(scene.job.status.trained_to, (api::TrainingLength{1, std::nullopt}));
  scene.job.training = epochs(3);
  ++scene.job.generation;
  scene.now += std::chrono::hours(1);
  const Plan plan = scene.step();
  EXPECT_EQ(created(plan), "ps-0.1 chief-0.1 worker-0.1 worker-1.1 evaluator-0.1");
  ASSERT_FALSE(plan.events.empty());
  EXPECT_EQ(plan.events[0].reason, "TrainsOn");
  EXPECT_EQ(plan.events[0].message,
            "the job has succeeded with 1 epoch and trains on: spec.training asks for 3 epochs");
  for (const char* type : {"SuccessCriteriaMet", "Succeeded", "Finished"})
    EXPECT_EQ(scene.job.status.find(type), nullptr) << type;
  EXPECT_EQ(scene.job.status.start_time, scene.now);
  EXPECT_EQ(scene.job.status.completion_time, std::nullopt);
  EXPECT_EQ(scene.job.status.trained_to, std::nullopt);
  EXPECT_EQ(scene.job.status.observed_generation, scene.job.generation);
  scene.start_all();
  succeed(scene);
  EXPECT_EQ(scene.job.status.trained_to, (api::TrainingLength{3, std::nullopt}));
}

// A view that was old when the job finished may have left it out.
TEST(TrainOn, WaitsForAReplicaWhoseEndNobodySaw) {
  Scene scene(make_job().chief().workers(2).decided_by(api::DecidedBy::chief));
  scene.start();
  scene.succeed(Role::chief);
  scene.succeed(Role::worker, 0);
  const ObservedReplica unseen = scene.replica(Role::worker, 1);
  std::erase(scene.view.replicas, unseen);
  wind_up(scene);
  ASSERT_TRUE(scene.has("Finished"));
  scene.job.training = epochs(2);
  scene.view.replicas.push_back(unseen);
  EXPECT_EQ(created(scene.step()), "");
  EXPECT_EQ(scene.leaving(), "worker-1");
  scene.leave_all(0);
  EXPECT_EQ(created(scene.step()), "chief-0.1 worker-0.1 worker-1.1");
}

TEST(TrainOn, FollowsFromMoreEpochsOrStepsOfAJobThatHasSucceededAlone) {
  const api::TrainingLength ten_epochs{10, std::nullopt}, ten_steps{std::nullopt, 10};
  struct {
    const char* condition;
    std::optional<api::TrainingLength> before;
    Json training;
    bool follows;
  } const cases[] = {
      {"Succeeded", ten_epochs, {{"epochs", 11}}, true},
      {"Succeeded", ten_epochs, {{"epochs", 10}}, false},
      {"Succeeded", ten_epochs, {{"epochs", 9}}, false},
      {"Succeeded", ten_epochs, {{"steps", 11}}, false},
      {"Succeeded", ten_steps, {{"steps", 11}}, true},
      {"Succeeded", ten_steps, {{"steps", 10}}, false},
      {"Succeeded", std::nullopt, {{"epochs", 11}}, false},
      {"Succeeded", ten_epochs, nullptr, false},
      {"Failed", ten_epochs, {{"epochs", 11}}, false},
      {"SuccessCriteriaMet", ten_epochs, {{"epochs", 11}}, false},
  };
  for (const auto& one : cases) {
    api::TrainingJob job = full_job();
    job.training = one.training;
    job.status.trained_to = one.before;
    job.status.conditions = {{one.condition, true, "", "", {}}};
    EXPECT_EQ(asks_for_more(job), one.follows) << one.condition << " " << one.training;
  }
}

TEST(TrainOn, DoesNotFollowFromMoreEpochsOfAJobThatHasFailed) {
  Scene scene = failed(full_job(), 90);
  scene.job.training = epochs(3);
  EXPECT_EQ(created(scene.step()), "");
  EXPECT_TRUE(scene.has("Finished"));
  EXPECT_EQ(scene.job.status.trained_to, std::nullopt);
}

// An operator of the version before has finished it, or has written its status since.
TEST(TrainOn, NeedsTheLengthThatAnOperatorHasSeenOfTheFinishedJob) {
  Scene scene = succeeded(full_job());
  scene.job.status.trained_to.reset();
  scene.job.training = epochs(3);
  EXPECT_EQ(created(scene.step()), "");
  EXPECT_EQ(scene.job.status.trained_to, (api::TrainingLength{3, std::nullopt}));
  scene.job.training = epochs(4);
  EXPECT_NE(created(scene.step()), "");
}

TEST(TrainOn, KeepsReplicasOfTheRunBeforeWhereNoneAreCleanedUpAndCountsNoEndTwice) {
  Scene scene = succeeded(full_job().clean(api::CleanPodPolicy::none));
  const size_t kept = scene.view.replicas.size();
  const int restarts = scene.job.status.restarts;
  scene.job.training = epochs(2);
  EXPECT_EQ(created(scene.step()), "ps-0.1 chief-0.1 worker-0.1 worker-1.1 evaluator-0.1");
  EXPECT_EQ(scene.view.replicas.size(), kept + 5);
  scene.start_all();
  scene.step();
  EXPECT_FALSE(scene.has("SuccessCriteriaMet"));
  EXPECT_EQ(scene.job.status.restarts, restarts);
}

TEST(TrainOn, ComesBeforeTheTimeToLiveAndGivesTheWholeDeadlineAgain) {
  Scene scene = succeeded(full_job().time_to_live(60).deadline(100));
  scene.job.training = epochs(2);
  scene.now += std::chrono::seconds(61);
  const Plan plan = scene.step();
  EXPECT_FALSE(plan.remove_job);
  EXPECT_EQ(plan.look_again, scene.now + std::chrono::seconds(100));
}

TEST(TrainOn, WaitsWhileTheJobIsSuspended) {
  Scene scene = succeeded(full_job());
  scene.job.training = epochs(2);
  scene.job.suspend = true;
  EXPECT_EQ(created(scene.step()), "");
  EXPECT_TRUE(scene.has("Suspended"));
  EXPECT_FALSE(scene.has("Finished"));
  scene.job.suspend = false;
  EXPECT_EQ(created(scene.step()), "ps-0.1 chief-0.1 worker-0.1 worker-1.1 evaluator-0.1");
}

TEST(TrainOn, DoesNotFollowWhereAnotherProgramManagesTheJob) {
  Scene scene = succeeded(full_job());
  scene.job.training = epochs(2);
  scene.job.managed_by = "somebody.else/operator";
  EXPECT_EQ(created(scene.step()), "");
  EXPECT_TRUE(scene.has("Finished"));
}

}  // namespace
}  // namespace muster::plan
