#include "operator/plan/stalls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/plan/scene.h"

namespace muster::plan {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

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

}  // namespace
}  // namespace muster::plan
