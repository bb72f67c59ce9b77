#include "trainer/loop/evaluation/stop_rule.h"

#include <gmock/gmock.h>

#include <thread>

#include "common/error.h"
#include "common/system/file.h"
#include "tests/unit/trainer/loop/support.h"
#include "trainer/loop/batches/stopping.h"

namespace muster::loop {
namespace {

namespace fs = std::filesystem;

// A synchronizer that stands at one position.
class Standing : public Synchronizer {
 public:
  explicit Standing(uint64_t step) { mutable_position().step = step; }
  void stand_at(uint64_t step) { mutable_position().step = step; }
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

TEST_F(StopRuleTest, ShowsEachResultOnce) {
  evaluate(1000, 0.5);
  evaluate(1500, 0.6);
  std::map<uint64_t, double> shown;
  StopRule rule(spec_, storage_, [&](uint64_t step, const Json& validation) {
    EXPECT_TRUE(shown.emplace(step, validation["accuracy"].get<double>()).second) << step;
  });
  Standing synchronizer(1500);
  rule.begin(synchronizer.position());
  rule.apply(synchronizer);
  rule.conclude(synchronizer);
  EXPECT_EQ(shown, (std::map<uint64_t, double>{{1000, 0.5}, {1500, 0.6}}));
}

TEST_F(StopRuleTest, ShowsWhatNothingIsDecidedBy) {
  spec_.stop_when.reset();
  evaluate(1000, 0.5);
  std::map<uint64_t, double> shown;
  StopRule rule(spec_, storage_, [&](uint64_t step, const Json& validation) {
    EXPECT_TRUE(shown.emplace(step, validation["accuracy"].get<double>()).second) << step;
  });
  Standing synchronizer(1500);
  rule.begin(synchronizer.position());
  rule.apply(synchronizer);
  evaluate(1500, 0.95);
  rule.conclude(synchronizer);
  EXPECT_EQ(shown, (std::map<uint64_t, double>{{1000, 0.5}, {1500, 0.95}}));
  EXPECT_EQ(synchronizer.position().evaluations, checkpoint::Evaluations());
}

TEST_F(StopRuleTest, LooksOnceMoreWhenTheTrainingEnds) {
  StopRule rule(spec_, storage_);
  Standing synchronizer(1500);
  rule.begin(synchronizer.position());
  evaluate(1500, 0.95);
  rule.conclude(synchronizer);
  ASSERT_TRUE(synchronizer.position().evaluations.reached);
  EXPECT_EQ(synchronizer.position().evaluations.reached->step, 1500u);
}

class EvaluatedBesideTest : public StopRuleTest {
 protected:
  EvaluatedBesideTest() {
    spec_.stop_when.reset();
    spec_.early_stopping = spec::EarlyStoppingSpec{"validationAccuracy", 2, 0.1, true};
    spec_.checkpoint.best_only = "validationAccuracy";
  }

  // Returns the evaluations after all of them up to `step` are taken.
  checkpoint::Evaluations taken_up_to(uint64_t step, Standing& synchronizer) {
    StopRule rule(spec_, storage_);
    rule.begin(synchronizer.position());
    while (synchronizer.position().evaluations.step < step) {
      rule.apply(synchronizer);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return synchronizer.position().evaluations;
  }
};

TEST_F(EvaluatedBesideTest, EndsWhenPatienceIsOverAndKnowsTheBest) {
  evaluate(100, 0.5);
  evaluate(200, 0.7);
  evaluate(300, 0.75);  // no improvement by more than minDelta
  Standing synchronizer(500);
  const auto going_on = taken_up_to(300, synchronizer);
  EXPECT_FALSE(has_ended(going_on, spec_));
  evaluate(1000, 0.6);
  evaluate(2000, 0.9);  // later than the end
  synchronizer.stand_at(2500);
  const auto ended = taken_up_to(1000, synchronizer);
  EXPECT_TRUE(has_ended(ended, spec_));
  EXPECT_EQ(ended.best->step, 200u);
  EXPECT_EQ(ended.best->value, 0.7);
  EXPECT_EQ(ended.kept->step, 300u);
  EXPECT_EQ(ended.without_improvement, 2u);
}

// The files of the evaluations stay, and say the same again.
TEST_F(EvaluatedBesideTest, AReplacedRankZeroDecidesTheSame) {
  const double values[] = {0.5, 0.7, 0.6, 0.9, 0.8, 0.85, 0.99};
  for (int i = 0; i < 7; ++i) evaluate(100 * static_cast<uint64_t>(i + 1), values[i]);
  Standing first(700);
  const auto expected = taken_up_to(600, first);
  ASSERT_TRUE(has_ended(expected, spec_));
  EXPECT_EQ(expected.best->step, 400u);
  Standing from_nothing(900);
  EXPECT_EQ(taken_up_to(600, from_nothing), expected);
  // This one begins at a checkpoint that knows some of the results.
  Standing from_a_checkpoint(900);
  from_a_checkpoint.evaluated(
      {9, checkpoint::Best{0.7, 200, 9}, 1, checkpoint::Best{0.7, 200, 9}, {}, 300});
  EXPECT_EQ(taken_up_to(600, from_a_checkpoint).best, expected.best);
}

TEST_F(EvaluatedBesideTest, AValueThatIsNotFiniteIsNoImprovement) {
  evaluate(100, 0.5);
  write_file_atomically(storage_ / "evaluations" / "200.json",
                        R"({"step": 200, "validation": {"loss": null, "accuracy": null}})");
  Standing synchronizer(300);
  const auto evaluations = taken_up_to(200, synchronizer);
  EXPECT_EQ(evaluations.best->step, 100u);
  EXPECT_EQ(evaluations.without_improvement, 1u);
}

TEST_F(EvaluatedBesideTest, RefusesAnEvaluationWithoutTheMetric) {
  // The second is that of a detector on images without objects.
  for (const char* validation : {R"({"loss": 0.5})", "{}"}) {
    write_file_atomically(storage_ / "evaluations" / "100.json",
                          std::string(R"({"step": 100, "validation": )") + validation + "}");
    Standing synchronizer(300);
    EXPECT_THAT([&] { taken_up_to(100, synchronizer); },
                testing::ThrowsMessage<Invalid>(testing::StartsWith("earlyStopping.metric: ")));
  }
}

TEST_F(EvaluatedBesideTest, AnEvaluationThatFailedDecidesNothing) {
  write_file_atomically(storage_ / "evaluations" / "100.json",
                        R"({"step": 100, "validation": {"error": "no such file"}})");
  Standing synchronizer(300);
  const auto evaluations = taken_up_to(100, synchronizer);
  EXPECT_FALSE(evaluations.best);
  EXPECT_EQ(evaluations.without_improvement, 0u);
}

}  // namespace
}  // namespace muster::loop
