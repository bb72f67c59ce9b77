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

JobBuilder full() {
  return make_job().ps(1).chief().workers(2).evaluator();
}

TEST(Retry, AFailedJobGoesOnInANewRunWithTheNextAttempts) {
  Scene scene = failed(full(), 90);
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
  Scene scene(full().backoff_limit(1));
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
  Scene scene(full().deadline(100));
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
    Scene scene(trains ? full() : full().own_image().never_restart(Role::chief));
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
  Scene scene(full());
  scene.start();
  scene.fail(Role::chief, 0, 90);
  scene.step();
  ASSERT_TRUE(scene.has("FailureTarget"));
  scene.job.status = retry(scene.job);
  EXPECT_EQ(created(scene.step()), "");
  EXPECT_EQ(scene.leaving(), "ps-0 worker-0 worker-1 evaluator-0");
  scene.leave_all();
  EXPECT_EQ(created(scene.step()), "ps-0.1 chief-0.1 worker-0.1 worker-1.1 evaluator-0.1");
}

Scene succeeded(const JobBuilder& builder) {
  Scene scene(builder);
  scene.start();
  scene.view.results = {{"step", 100}};
  scene.view.final_checkpoint_evaluated = true;
  for (const Role role : {Role::chief, Role::worker, Role::evaluator}) {
    const auto spec = scene.job.replicas.find(role);
    for (int i = 0; spec != scene.job.replicas.end() && i < spec->second.replicas; ++i)
      scene.succeed(role, i);
  }
  wind_up(scene);
  EXPECT_TRUE(scene.has("Succeeded"));
  EXPECT_FALSE(scene.job.status.results.is_null());
  return scene;
}

TEST(TrainOn, ASucceededJobBeginsANewRunOfAllItsReplicas) {
  Scene scene = succeeded(full());
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

}  // namespace
}  // namespace muster::plan
