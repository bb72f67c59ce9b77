#include "trainer/checkpoint/start/completion.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/documents/schema.h"
#include "trainer/spec/convert.h"
#include "trainer/spec/schema.h"

namespace muster::checkpoint {
namespace {

using Changes = std::vector<std::pair<const char*, const char*>>;

Json training(const Changes& changes) {
  Document document = Document::parse(R"(
model: {layers: [dense: {name: logits, units: 4}]}
data:
  train: {syntheticClasses: {samples: 1000, shape: [8], classes: 4}}
  validation: {syntheticClasses: {samples: 100, shape: [8], classes: 4}}
batchSize: 32
)",
                                      "training.yaml");
  for (const auto& [path, value] : changes) document.set(path, value);
  for (const Problem& problem : apply_schema(spec::training_schema(), document))
    ADD_FAILURE() << problem.text();
  return document.value();
}

// The final checkpoint of a training of four epochs (in 128 steps), or of one that has ended
// before.
Manifest final_of(const Json& training, const Evaluations& evaluations) {
  Manifest manifest;
  manifest.position.step = 128;
  manifest.position.epoch = 4;
  manifest.position.evaluations = evaluations;
  manifest.training = training;
  manifest.ended = end_of(evaluations, spec::to_training_spec(training));
  return manifest;
}

const Changes kFour = {{"epochs", "4"}};
const Changes kSteps = {{"steps", "128"}};
const Changes kPatient = {{"epochs", "9"},
                          {"earlyStopping", "{metric: validationLoss, patience: 2}"},
                          {"evaluation", "{everyEpochs: 1}"}};
const Changes kGoal = {{"epochs", "9"},
                       {"stopWhen", "{metric: validationAccuracy, atLeast: 0.9}"},
                       {"evaluation", "{everyEpochs: 1}"}};

Changes with(Changes changes, const char* path, const char* value) {
  for (auto& [known, old] : changes)
    if (std::string_view(known) == path) old = value;
  return changes;
}

TEST(Completion, CoversAFinalCheckpointWhereTheTrainingWouldEndThereToo) {
  const Best reached{0.95, 128, 4};
  const Evaluations none;
  const Evaluations stopped{4, Best{0.1, 64, 2}, 2, {}, {}, 128};
  const Evaluations good{4, {}, 0, {}, reached, 128};
  const struct {
    const char* name;
    Changes before;
    Evaluations evaluations;
    End end;
    Changes now;
    bool covered;
  } cases[] = {
      {"the same epochs", kFour, none, End::length, kFour, true},
      {"more epochs", kFour, none, End::length, with(kFour, "epochs", "5"), false},
      {"fewer epochs", kFour, none, End::length, with(kFour, "epochs", "3"), true},
      {"the same steps", kSteps, none, End::length, kSteps, true},
      {"more steps", kSteps, none, End::length, with(kSteps, "steps", "129"), false},
      {"as many epochs as these steps were", kSteps, none, End::length, kFour, true},
      {"early stopping", kPatient, stopped, End::early_stopping, kPatient, true},
      {"early stopping, more epochs", kPatient, stopped, End::early_stopping,
       with(kPatient, "epochs", "99"), true},
      {"early stopping, more patience", kPatient, stopped, End::early_stopping,
       with(kPatient, "earlyStopping", "{metric: validationLoss, patience: 3}"), false},
      {"stopWhen", kGoal, good, End::stop_when, kGoal, true},
      {"another stopWhen", kGoal, good, End::stop_when,
       with(kGoal, "stopWhen", "{metric: validationAccuracy, atLeast: 0.99}"), false},
      {"no stopWhen, and as long as it was", kGoal, good, End::stop_when, kFour, true},
  };
  for (const auto& test : cases) {
    const Manifest manifest = final_of(training(test.before), test.evaluations);
    EXPECT_EQ(manifest.ended, test.end) << test.name;
    for (const bool distributed : {false, true}) {
      const Completion completion(training(test.now), distributed);
      EXPECT_EQ(completion.covers(manifest), test.covered) << test.name;
      Manifest on_the_way = manifest;
      on_the_way.ended.reset();
      EXPECT_FALSE(completion.covers(on_the_way)) << test.name;
    }
  }
}

// A training of 128 synchronous steps went on asynchronously when its batches were done already.
TEST(Completion, GoesByTheLengthWhereAFinalCheckpointHasFewerSteps) {
  Manifest manifest = final_of(training(kSteps), {});
  manifest.position.step = 32;
  EXPECT_TRUE(Completion(training(kSteps), true).covers(manifest));
  EXPECT_FALSE(Completion(training(with(kSteps, "steps", "129")), true).covers(manifest));
  manifest.ended = End::stop_when;
  EXPECT_FALSE(Completion(training(kSteps), true).covers(manifest));
}

}  // namespace
}  // namespace muster::checkpoint
