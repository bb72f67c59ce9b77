#include "trainer/loop/evaluation/stop_rule.h"

#include <gtest/gtest.h>

#include <thread>

#include "common/file.h"
#include "tests/unit/trainer/loop/support.h"

namespace muster::loop {
namespace {

namespace fs = std::filesystem;

// A synchronizer that stands at one position.
class Standing : public Synchronizer {
 public:
  explicit Standing(uint64_t step) { mutable_position().step = step; }
  bool start(std::stop_token) override { return true; }
  bool has_next() override { return true; }
  StepResult step() override { return {}; }
  uint64_t generation() const override { return 1; }
  void read_weights(std::span<float>) override {}
  std::unique_ptr<Snapshot> snapshot() override { return nullptr; }
};

class StopRuleTest : public testing::Test {
 protected:
  StopRuleTest() {
    spec_.stop_when = spec::StopWhenSpec{"validationAccuracy", true, 0.9};
    fs::create_directories(storage_ / "evaluations");
  }

  // `age`: how long ago it was written.
  void evaluate(uint64_t step, double accuracy, std::chrono::seconds age = {}) {
    const fs::path file = storage_ / "evaluations" / (std::to_string(step) + ".json");
    const Json json = {{"step", step}, {"validation", {{"loss", 0.1}, {"accuracy", accuracy}}}};
    write_file_atomically(file, json.dump());
    fs::last_write_time(file, fs::file_time_type::clock::now() - age);
  }

  // Waits until the rule has found an evaluation, and returns its step.
  uint64_t step_found(StopRule& rule, Standing& synchronizer) {
    for (;;) {
      rule.apply(synchronizer);
      const auto& reached = synchronizer.position().evaluations.reached;
      if (reached) return reached->step;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  spec::TrainingSpec spec_;
  const fs::path storage_ = fresh_folder("stop_rule");
};

TEST_F(StopRuleTest, TakesWhatWasFoundWhileItWasAway) {
  evaluate(1000, 0.5);
  evaluate(1500, 0.95);
  StopRule rule(spec_, storage_);
  Standing synchronizer(1500);
  rule.begin(synchronizer.position());
  EXPECT_EQ(step_found(rule, synchronizer), 1500u);
}

TEST_F(StopRuleTest, LeavesOutStepsThatWillBeMadeAgain) {
  evaluate(2000, 0.95, std::chrono::seconds(60));
  StopRule rule(spec_, storage_);
  Standing synchronizer(1500);
  rule.begin(synchronizer.position());
  evaluate(3000, 0.92);
  EXPECT_EQ(step_found(rule, synchronizer), 3000u);
}

TEST_F(StopRuleTest, TakesThemOnceTheyAreEvaluatedAgain) {
  evaluate(2000, 0.95, std::chrono::seconds(60));
  StopRule rule(spec_, storage_);
  Standing synchronizer(1500);
  rule.begin(synchronizer.position());
  evaluate(2000, 0.91);
  step_found(rule, synchronizer);
  EXPECT_EQ(synchronizer.position().evaluations.reached->value, 0.91);
}

}  // namespace
}  // namespace muster::loop
