#include "trainer/checkpoint/start/resume.h"

#include <gmock/gmock.h>

#include "common/documents/schema.h"
#include "trainer/spec/schema.h"

namespace muster::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Json training(const std::string& change = "", const std::string& text = "") {
  Document document = Document::parse(R"(
model:
  layers:
    - dense: {name: hidden, units: 16, activation: relu}
    - dropout: {rate: 0.1}
    - dense: {name: logits, units: 4}
data: {train: {syntheticClasses: {samples: 1000, shape: [8], classes: 4}}}
batchSize: 32
epochs: 2
)",
                                      "training.yaml");
  if (!change.empty()) document.set(change, text);
  EXPECT_TRUE(apply_schema(spec::training_schema(), document).empty());
  return document.value();
}

Manifest checkpoint_of(const Json& training, uint64_t next_batch = 3) {
  Manifest manifest;
  manifest.position.step = 103;
  manifest.position.epoch = 1;
  manifest.position.next_batch = next_batch;
  manifest.training = training;
  return manifest;
}

std::vector<std::string> obstacles(const Resumption& resumption) {
  std::vector<std::string> paths;
  for (const auto& obstacle : resumption.obstacles) paths.push_back(obstacle.change.path);
  return paths;
}

struct Case {
  const char *name, *path, *value, *obstacle, *changed;
};
class Resume : public testing::TestWithParam<Case> {};

TEST_P(Resume, SaysWhatStandsInTheWayAndWhatIsOther) {
  const Case& test = GetParam();
  const Resumption found =
      resume(checkpoint_of(training()), training(test.path, test.value), false);
  EXPECT_EQ(testing::PrintToString(obstacles(found)),
            testing::PrintToString(*test.obstacle ? std::vector<std::string>{test.obstacle}
                                                  : std::vector<std::string>{}));
  EXPECT_EQ(spec::list_changes(found.changed), test.changed);
}

INSTANTIATE_TEST_SUITE_P(
    Fields, Resume,
    testing::Values(
        Case{"nothing", "", "", "", ""}, Case{"epochs", "epochs", "5", "", ""},
        Case{"saving", "checkpoint.everySteps", "5", "", ""},
        Case{"seed", "seed", "7", "", "seed (was 1, is 7)"},
        Case{"rate", "optimizer.learningRate", "0.01", "",
             "optimizer.learningRate (was 0.001, is 0.01)"},
        Case{"data", "data.train.syntheticClasses.samples", "2000", "",
             "data.train.syntheticClasses.samples (was 1000, is 2000)"},
        Case{"units", "model.layers[0].dense.units", "8", "model.layers[0].dense.units", ""},
        Case{"bias", "model.layers[0].dense.useBias", "false", "model.layers[0].dense.useBias", ""},
        Case{"name", "model.layers[0].dense.name", "first", "model.layers[0].dense.name", ""},
        Case{"dropout", "model.layers[1].dropout.rate", "0.5", "",
             "model.layers[1].dropout.rate (was 0.1, is 0.5)"},
        Case{"activation", "model.layers[0].dense.activation", "sigmoid", "",
             R"(model.layers[0].dense.activation (was "relu", is "sigmoid"))"},
        Case{"optimizer_without_slots", "optimizer.name", "sgd", "",
             R"(optimizer.name (was "adam", is "sgd"))"},
        Case{"optimizer_of_the_same_slots", "optimizer.name", "adamw", "",
             R"(optimizer.name (was "adam", is "adamw"))"},
        Case{"optimizer_of_whole_tensors_with_the_same_slots", "optimizer.name", "lamb", "",
             R"(optimizer.name (was "adam", is "lamb"))"},
        Case{"optimizer_of_other_slots", "optimizer.name", "momentum", "optimizer.name", ""},
        Case{"average_that_was_not_kept", "optimizer.ema", "{decay: 0.5}", "optimizer.ema", ""},
        Case{"clipping", "optimizer.clipValue", "0.5", "",
             "optimizer.clipValue (was not there, is 0.5)"},
        Case{"batch_that_divides", "batchSize", "48", "", "batchSize (was 32, is 48)"},
        Case{"batch_that_does_not", "batchSize", "40", "batchSize", ""}),
    [](const auto& info) { return info.param.name; });

TEST(ResumePosition, IsCountedInTheNewBatches) {
  const auto next = [](const std::string& batch) {
    return resume(checkpoint_of(training()), training("batchSize", batch), false)
        .position.next_batch;
  };
  EXPECT_EQ(next("32"), 3u);
  EXPECT_EQ(next("48"), 2u);
  EXPECT_EQ(next("16"), 6u);
  EXPECT_EQ(next("1"), 96u);
}

TEST(ResumePosition, NamesBothBatchSizes) {
  const Resumption found = resume(checkpoint_of(training()), training("batchSize", "40"), false);
  ASSERT_EQ(found.obstacles.size(), 1u);
  EXPECT_EQ(found.obstacles[0].change.before, 32);
  EXPECT_EQ(found.obstacles[0].change.after, 40);
  EXPECT_THAT(found.obstacles[0].why,
              HasSubstr("96 samples of epoch 1 are done, no whole number of batches of 40"));
}

TEST(ResumePosition, AtAnEpochsBeginAnyBatchSizeGoesOn) {
  const Resumption found = resume(checkpoint_of(training(), 0), training("batchSize", "7"), false);
  EXPECT_THAT(found.obstacles, IsEmpty());
  EXPECT_EQ(found.position.next_batch, 0u);
}

TEST(ResumePosition, OfTicketsCountsWhatOneHolds) {
  Json before = training("gradientAccumulation", "2");
  before["synchronization"]["policy"] = "async";
  Json after = before;
  after["gradientAccumulation"] = 3;
  EXPECT_EQ(resume(checkpoint_of(before), after, true).position.next_batch, 2u);
  EXPECT_EQ(resume(checkpoint_of(before), after, false).position.next_batch, 3u);
  Manifest manifest = checkpoint_of(before);
  manifest.position.outstanding = {1};
  EXPECT_THAT(obstacles(resume(manifest, after, true)), ElementsAre("gradientAccumulation"));
  Json devices = before;
  devices["devices"] = 3;
  EXPECT_EQ(resume(checkpoint_of(before), devices, true).position.next_batch, 1u);
  EXPECT_EQ(resume(checkpoint_of(before), devices, false).position.next_batch, 3u);
  EXPECT_THAT(obstacles(resume(manifest, devices, true)), ElementsAre("devices"));
}

TEST(ResumeWithoutTheAverage, GoesOn) {
  Json before = training();
  before["optimizer"]["ema"] = {{"decay", 0.5}};
  const Resumption found = resume(checkpoint_of(before), training(), false);
  EXPECT_THAT(found.obstacles, IsEmpty());
  EXPECT_EQ(found.changed.size(), 1u);
  Json slower = before;
  slower["optimizer"]["ema"]["decay"] = 0.75;
  EXPECT_THAT(resume(checkpoint_of(before), slower, false).obstacles, IsEmpty());
}

// At first, both earlyStopping and bestOnly go by the loss.
TEST(ResumePosition, ForgetsWhatEvaluationsFoundByAnotherMetricOrLossOrOnOtherData) {
  const std::string validation = "{syntheticClasses: {samples: 100, shape: [8], classes: 4}}";
  Document document;
  document.value() = training("data.validation", validation);
  document.set("evaluation", "{}");
  document.set("earlyStopping", "{patience: 2}");
  document.set("checkpoint.bestOnly", "{}");
  ASSERT_TRUE(apply_schema(spec::training_schema(), document).empty());
  Manifest manifest = checkpoint_of(document.value());
  const Evaluations all = {1, Best{0.5, 50, 1}, 1, Best{0.5, 50, 1}, {}, 50};
  manifest.position.evaluations = all;
  const auto after = [&](const char* path, const char* value) {
    Document changed;
    changed.value() = document.value();
    changed.set(path, value);
    const Resumption found = resume(manifest, changed.value(), false);
    EXPECT_THAT(found.obstacles, IsEmpty());
    EXPECT_EQ(found.changed.empty(), spec::bearing_of(path) != spec::Bearing::course);
    return found.position.evaluations;
  };
  const Evaluations no_best = {1, {}, 0, Best{0.5, 50, 1}, {}, 50};
  EXPECT_EQ(after("earlyStopping.patience", "5"), all);
  EXPECT_EQ(after("earlyStopping.metric", "validationAccuracy"), no_best);
  EXPECT_EQ(after("earlyStopping", "null"), no_best);
  EXPECT_EQ(after("checkpoint.bestOnly.metric", "validationAccuracy"),
            (Evaluations{1, Best{0.5, 50, 1}, 1, {}, {}, 50}));
  EXPECT_EQ(after("earlyStopping.metric", "validationBalancedAccuracy"), no_best);
  EXPECT_EQ(after("model.loss", "meanSquaredError"),
            (Evaluations{1, {}, 0, {}, {}, manifest.position.step}));
  EXPECT_EQ(after("data.validation.syntheticClasses.samples", "200"),
            (Evaluations{1, {}, 0, {}, {}, manifest.position.step}));
}

TEST(ResumePosition, ForgetsWhatAnotherStopWhenHasDecided) {
  const std::string rule = "{metric: trainLoss, atMost: 0.5}";
  Manifest manifest = checkpoint_of(training("stopWhen", rule));
  manifest.position.evaluations.reached = Best{0.4, 50, 1};
  const auto reached = [&](const std::string& now) {
    return resume(manifest, training("stopWhen", now), false).position.evaluations.reached;
  };
  EXPECT_EQ(reached(rule), (Best{0.4, 50, 1}));
  EXPECT_FALSE(reached("{metric: trainLoss, atMost: 0.3}"));
  EXPECT_FALSE(reached("null"));
}

TEST(ResumePosition, OfATrainingThatIsNotOursIsLeftAlone) {
  Manifest manifest = checkpoint_of({{"batchSize", 64}, {"fieldOfTheFuture", 1}});
  const Resumption found = resume(manifest, training(), false);
  EXPECT_EQ(found.position.next_batch, 3u);
  EXPECT_THAT(found.obstacles, IsEmpty());
}

}  // namespace
}  // namespace muster::checkpoint
