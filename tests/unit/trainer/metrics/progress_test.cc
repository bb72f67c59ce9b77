#include "trainer/metrics/progress.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::metrics {
namespace {

TEST(Progress, HasTheApisFieldNames) {
  Progress progress;
  progress.state = "training";
  progress.step = 7;
  progress.steps_here = 4;
  progress.total_steps = 100;
  progress.epoch = 1;
  progress.loss = 0.25;
  progress.training = {{"accuracy", 0.5}};
  progress.examples_per_second = 1000.0004;
  progress.input_wait_seconds = 1.5000004;
  progress.eta_seconds = 12.00004;
  progress.last_checkpoint_step = 5;
  progress.last_checkpoint_time = 1700000000.7;
  progress.goodput = 0.75;
  progress.generation = 3;
  EXPECT_EQ(
      progress.json("chief", 0).dump(),
      R"({"role":"chief","index":0,"state":"training","step":7,"stepsHere":4,"totalSteps":100,"epoch":1,)"
      R"("loss":"0.25","metrics":{"accuracy":0.5},"examplesPerSecond":1000.0,)"
      R"("inputWaitSeconds":1.5,"etaSeconds":12.0,"lastCheckpointStep":5,"lastCheckpointTime":"2023-11-14T22:13:20Z",)"
      R"("goodput":0.75,"generation":3})");
}

TEST(Progress, LeavesOutWhatIsUnknown) {
  const Json json = Progress{}.json("ps", 1);
  for (const char* name : {"loss", "etaSeconds", "lastCheckpointStep", "lastCheckpointTime"}) {
    EXPECT_FALSE(json.contains(name)) << name;
  }
}

TEST(Progress, WritesALossThatIsNoNumberAsText) {
  const std::pair<double, const char*> cases[] = {
      {std::numeric_limits<double>::quiet_NaN(), "NaN"}, {HUGE_VAL, "+Inf"}, {-HUGE_VAL, "-Inf"}};
  for (const auto& [loss, text] : cases) {
    Progress progress;
    progress.loss = loss;
    EXPECT_EQ(progress.json("chief", 0)["loss"], text);
  }
}

TEST(Progress, IsJsonWhateverTheNumbers) {
  Progress progress;
  progress.training = {{"accuracy", std::nan("")}, {"good", 1}};
  progress.examples_per_second = HUGE_VAL;
  progress.eta_seconds = HUGE_VAL;
  progress.goodput = std::nan("");
  progress.last_checkpoint_time = 1e300;
  const Json json = Json::parse(progress.json("chief", 0).dump());
  EXPECT_EQ(json["metrics"].dump(), R"({"good":1.0})");
  for (const char* name : {"examplesPerSecond", "etaSeconds", "goodput"}) {
    EXPECT_FALSE(json.contains(name)) << name;
  }
}

}  // namespace
}  // namespace muster::metrics
