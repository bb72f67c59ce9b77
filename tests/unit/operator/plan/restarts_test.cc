#include "operator/plan/restarts.h"

#include "tests/unit/operator/plan/scene.h"

namespace muster::plan {
namespace {

using std::chrono::seconds;

TEST(BackOff, DoublesUpToFiveMinutes) {
  const int expected[] = {0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300};
  for (int restarts = 0; restarts < 12; ++restarts) {
    EXPECT_EQ(back_off(restarts), seconds(expected[restarts])) << restarts;
  }
  EXPECT_EQ(back_off(1'000'000'000), seconds(300));
}

TEST(BackOff, TheFirstRestartIsAtOnceTheNextOnesWait) {
  Scene scene(make_job().ps(1).chief().workers(1).backoff_limit(100));
  scene.start();
  for (int delay : {0, 1, 2, 4, 8}) {
    scene.fail(Role::worker, 0, 1);
    Plan plan = scene.step();
    if (delay > 0) {
      EXPECT_EQ(created(plan), "");
      ASSERT_TRUE(plan.look_again);
      EXPECT_EQ(*plan.look_again, scene.now + seconds(delay));
      EXPECT_EQ(created(scene.step_after(delay - 0.001)), "");
      plan = scene.step_after(0.001);
    }
    EXPECT_EQ(plan.create.size(), 1u) << delay;
    scene.start_all();
    scene.step();
  }
}

TEST(BackOff, StartsAgainAfterTenGoodMinutes) {
  struct Case {
    double ran;
    bool at_once;
  };
  for (const Case& test : {Case{599, false}, Case{600, true}}) {
    Scene scene(make_job().ps(1).chief().workers(1));
    scene.start();
    scene.fail(Role::worker, 0, 1);
    scene.step();
    scene.start_all();
    scene.step_after(test.ran);
    scene.fail(Role::worker, 0, 1);
    EXPECT_EQ(created(scene.step()) == "worker-0.2", test.at_once) << test.ran;
  }
}

TEST(BackOff, IsOfOneIndexOnly) {
  Scene scene(make_job().ps(1).chief().workers(2));
  scene.start();
  scene.fail(Role::worker, 0, 1);
  scene.step();
  scene.fail(Role::worker, 0, 1);
  scene.fail(Role::worker, 1, 1);
  EXPECT_EQ(created(scene.step()), "worker-1.1");
}

TEST(BackOff, AClockThatWasSetBackDoesNotHoldAReplicaForHours) {
  Scene scene(make_job().ps(1).chief().workers(1));
  scene.start();
  scene.fail(Role::worker, 0, 1);
  scene.step();
  scene.fail(Role::worker, 0, 1);
  scene.step();
  scene.now -= std::chrono::hours(3);
  EXPECT_EQ(created(plan(scene.job, scene.view, scene.now)), "worker-0.2");
}

TEST(BackOff, AHostWhoseClockIsAheadDoesNotDelayTheRestart) {
  Scene scene(make_job().ps(1).chief().workers(1));
  scene.start();
  scene.fail(Role::worker, 0, 1);
  scene.replica(Role::worker).finished = scene.now + std::chrono::hours(3);
  EXPECT_EQ(created(scene.step()), "worker-0.1");
}

}  // namespace
}  // namespace muster::plan
