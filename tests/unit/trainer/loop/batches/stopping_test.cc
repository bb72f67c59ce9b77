#include "trainer/loop/batches/stopping.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "common/error.h"
#include "common/system/file.h"

namespace muster::loop {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

spec::TrainingSpec rule_of(const std::string& metric, uint64_t patience, double min_delta) {
  spec::TrainingSpec spec;
  spec.early_stopping = spec::EarlyStoppingSpec{metric, patience, min_delta, true};
  spec.checkpoint.best_only = metric;
  return spec;
}

std::vector<compute::Metric> metrics_of(double value) {
  const double finite = std::isfinite(value) ? value : 0;
  return {{"loss", value}, {"accuracy", finite}, {"balancedAccuracy", 1 - finite}};
}

struct Course {
  checkpoint::Position position;
  std::vector<uint64_t> saved;
};

// An epoch of ten steps before each value, until early stopping ends it.
Course follow(const spec::TrainingSpec& spec, const std::vector<double>& values) {
  Course course;
  checkpoint::Position& position = course.position;
  for (const double value : values) {
    ++position.epoch;
    position.step += 10;
    position.evaluations = after(position, metrics_of(value), spec);
    const auto& kept = position.evaluations.kept;
    if (kept && kept->epoch == position.epoch) course.saved.push_back(position.epoch);
    if (is_stopped(position.evaluations, spec.early_stopping)) break;
  }
  return course;
}

TEST(StoppingTest, EndsAndChoosesAsKerasDoes) {
  const auto file =
      std::filesystem::path(MUSTER_SOURCE_DIR) / "tests/fixtures/keras/early-stopping.json";
  const Json fixture = Json::parse(read_file(file));
  int stopped = 0;
  for (const Json& one : fixture["cases"]) {
    const auto spec = rule_of(one["metric"], one["patience"], one["minDelta"]);
    const Course course = follow(spec, one["values"].get<std::vector<double>>());
    const auto& evaluations = course.position.evaluations;
    EXPECT_EQ(course.position.epoch, one["epochs"]) << one;
    EXPECT_EQ(is_stopped(evaluations, spec.early_stopping), one["stopped"]) << one;
    EXPECT_EQ(evaluations.best->epoch, one["restored"]) << one;
    EXPECT_EQ(evaluations.best->step, 10 * evaluations.best->epoch);
    EXPECT_EQ(course.saved, one["saved"].get<std::vector<uint64_t>>()) << one;
    stopped += one["stopped"] ? 1 : 0;
  }
  EXPECT_GT(stopped, 10);
}

TEST(StoppingTest, AValueThatIsNotFiniteIsNoImprovement) {
  const auto spec = rule_of("validationLoss", 3, 0);
  const Course none = follow(spec, {kNan, kInfinity, kNan, 0.1});
  EXPECT_EQ(none.position.epoch, 3u);
  EXPECT_FALSE(none.position.evaluations.best);
  EXPECT_FALSE(none.position.evaluations.kept);
  const Course late = follow(spec, {kNan, kInfinity, 0.5, kNan, 0.4});
  EXPECT_EQ(late.position.evaluations.best->value, 0.4);
  EXPECT_EQ(late.position.evaluations.without_improvement, 0u);
}

// The balanced accuracy falls here while the accuracy rises.
TEST(StoppingTest, GoesByTheMetricThatIsNamed) {
  const std::vector<double> values = {0.25, 0.5, 0.75};
  struct Case {
    const char* metric;
    uint64_t epoch;
    double value;
  };
  for (const Case& one : {Case{"validationLoss", 1, 0.25}, Case{"validationAccuracy", 3, 0.75},
                          Case{"validationBalancedAccuracy", 1, 0.75}}) {
    const auto found = follow(rule_of(one.metric, 5, 0), values).position.evaluations;
    EXPECT_EQ(found.best, (checkpoint::Best{one.value, 10 * one.epoch, one.epoch})) << one.metric;
    EXPECT_EQ(found.kept, found.best) << one.metric;
    EXPECT_EQ(found.without_improvement, 3 - one.epoch) << one.metric;
  }
}

TEST(StoppingTest, WithoutARuleNothingEndsItAndNothingIsRemembered) {
  const Course course = follow({}, {1.0, 2.0, 3.0, 4.0});
  EXPECT_EQ(course.position.evaluations, (checkpoint::Evaluations{4, {}, 0, {}, {}, 40}));
}

// Without large objects there is no such precision.
TEST(StoppingTest, RefusesAMetricThatTheValidationDataDoNotGive) {
  const std::string metric = "validationAveragePrecisionLarge";
  spec::TrainingSpec early, best, until;
  early.early_stopping = spec::EarlyStoppingSpec{metric, 1, 0, true};
  best.checkpoint.best_only = metric;
  until.stop_when = spec::StopWhenSpec{metric, true, 0.5};
  const std::pair<spec::TrainingSpec*, std::string> rules[] = {
      {&early, "earlyStopping.metric"},
      {&best, "checkpoint.bestOnly.metric"},
      {&until, "stopWhen.metric"}};
  for (const auto& [spec, field] : rules) {
    spec->model.loss = compute::SsdLoss{};
    EXPECT_THAT(
        [&] {
          after({}, std::vector<compute::Metric>{{"loss", 1}}, *spec);
        },
        testing::ThrowsMessage<Invalid>(testing::AllOf(testing::StartsWith(field + ": expected "),
                                                       testing::HasSubstr(metric))));
  }
}

spec::TrainingSpec stop_when(const std::string& metric, bool at_least, double value) {
  spec::TrainingSpec spec;
  spec.stop_when = spec::StopWhenSpec{metric, at_least, value};
  return spec;
}

TEST(StopWhenTest, AnEvaluationReachesAValueOrDoesNot) {
  checkpoint::Position position;
  position.step = 30;
  position.epoch = 3;
  struct Case {
    const char* metric;
    bool at_least;
    double value, found;
    bool reached;
  };
  for (const Case& one : {Case{"validationLoss", false, 0.5, 0.5, true},
                          Case{"validationLoss", false, 0.5, 0.6, false},
                          Case{"validationLoss", false, 0.5, kNan, false},
                          Case{"validationAccuracy", true, 0.5, 0.7, true},
                          Case{"validationAccuracy", true, 0.5, 0.4, false},
                          Case{"validationBalancedAccuracy", true, 0.5, 0.4, true},
                          Case{"trainLoss", false, 0.5, 0.1, false}}) {
    const auto found =
        after(position, metrics_of(one.found), stop_when(one.metric, one.at_least, one.value));
    EXPECT_EQ(found.reached.has_value(), one.reached) << one.metric << " " << one.found;
    if (one.reached) {
      EXPECT_EQ(found.reached->step, 30u);
    }
  }
}

TEST(StopWhenTest, TheLossOfTheLastWholeEpochReachesAValueOrDoesNot) {
  const auto spec = stop_when("trainLoss", false, 0.5);
  checkpoint::Position position;
  const auto add = [&](uint64_t epoch, double loss) {
    compute::LossSums sums;
    sums.loss = 10 * loss;
    sums.weight = 10;
    sums.rows = 10;
    position.sums.add(epoch, sums);
  };
  EXPECT_FALSE(reached_by_training(position, spec));
  add(0, 0.4);
  EXPECT_FALSE(reached_by_training(position, spec));  // the epoch is not over
  position.epoch = 1;
  position.step = 7;
  EXPECT_EQ(reached_by_training(position, spec), (checkpoint::Best{0.4, 7, 1}));
  EXPECT_FALSE(reached_by_training(position, stop_when("trainLoss", false, 0.3)));
  EXPECT_FALSE(reached_by_training(position, stop_when("validationLoss", false, 0.5)));
  EXPECT_FALSE(reached_by_training(position, {}));
  add(1, 0.6);
  position.epoch = 2;
  EXPECT_FALSE(reached_by_training(position, spec));
  position.epoch = 4;  // an epoch of which nothing is known
  EXPECT_FALSE(reached_by_training(position, spec));
}

// A detector whose images have no object: the loss is a mean over nothing, and not 0.
TEST(StopWhenTest, AMeanOverNothingReachesNothing) {
  auto spec = stop_when("trainLoss", false, 0.5);
  spec.model.loss = compute::SsdLoss{};
  checkpoint::Position position;
  compute::LossSums sums;
  sums.rows = 10;
  position.sums.add(0, sums);
  position.epoch = 1;
  EXPECT_FALSE(reached_by_training(position, spec));
}

}  // namespace
}  // namespace muster::loop
