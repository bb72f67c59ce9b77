#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/spec/check.h"

namespace muster::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> problems_of(const std::string& text) {
  Document document = Document::parse(text, "t.yaml");
  std::vector<std::string> texts;
  for (const Problem& problem : validate_training(document)) texts.push_back(problem.text());
  return texts;
}

struct Mistake {
  const char* name;
  const char* model;
  const char* train;
  const char* rest;
  const char* text;
};

class OneMistake : public testing::TestWithParam<Mistake> {};

TEST_P(OneMistake, IsOneProblem) {
  const Mistake& mistake = GetParam();
  const std::string text = std::string("model: ") + mistake.model +
                           "\ndata: {train: " + mistake.train + "}\n" + mistake.rest + "\n";
  EXPECT_THAT(problems_of(text), ElementsAre(HasSubstr(mistake.text)));
}

constexpr const char* kModel = "{name: mnist-mlp}";
constexpr const char* kLayers = "{layers: [{dense: {units: 10}}]}";
constexpr const char* kTrain = "{idx: {images: i, labels: l}}";
constexpr const char* kRest = "epochs: 1";

INSTANTIATE_TEST_SUITE_P(
    Table, OneMistake,
    testing::Values(
        Mistake{"PathOfAShell", kModel, "{idx: {images: ~/mnist/i, labels: l}}", kRest,
                "data.train.idx.images: expected the whole path, for '~' is not expanded here, "
                "found '~/mnist/i'"},
        Mistake{"PathsInAList", kModel, "{idx: {files: [{images: i, labels: $HOME/l}]}}", kRest,
                "data.train.idx.files[0].labels: expected the whole path, for '$HOME' is not"},
        Mistake{"PathOfWeights", kModel, kTrain,
                "epochs: 1\ninitializeFrom: '${RUNS}/a.safetensors'",
                "initializeFrom: expected the whole path, for '${RUNS}' is not expanded here"},
        Mistake{"ModelName", "{nmae: mnist-mlp}", kTrain, kRest, "did you mean name?"},
        Mistake{"UnknownModel", "{name: mnist}", kTrain, kRest,
                "did you mean mnist-mlp, mnist-sigmoid or mnist-cnn?"},
        Mistake{"Layers", "{layesr: [{dense: {units: 3}}]}", kTrain, kRest, "did you mean layers?"},
        Mistake{"EvaluationOfNothing", kModel, kTrain, "epochs: 1\nevaluation: {}",
                "evaluation: expected data.validation beside evaluation, found none"},
        Mistake{"StoppingWithoutData", kModel, kTrain, "epochs: 1\nearlyStopping: {patience: 1}",
                "earlyStopping: expected data.validation beside earlyStopping, found none"},
        Mistake{"StoppingWithoutPatience", kModel,
                "{idx: {images: i, labels: l}}, validation: {idx: {images: i, labels: l}}",
                "epochs: 1\nevaluation: {}\nearlyStopping: {}", "earlyStopping.patience"},
        Mistake{"StoppingWithMisspeltEvaluation", kModel,
                "{idx: {images: i, labels: l}}, validation: {idx: {images: i, labels: l}}",
                "epochs: 1\nevaluation: 1\nearlyStopping: {patience: 1}",
                "evaluation: expected an object"},
        Mistake{"BestWithoutData", kModel, kTrain, "epochs: 1\ncheckpoint: {bestOnly: {}}",
                "checkpoint.bestOnly: expected data.validation beside bestOnly, found none"},
        Mistake{"AccuracyOfNumbers", "{name: linear-regression}",
                "{syntheticLinear: {samples: 9}}, validation: {syntheticLinear: {samples: 9}}",
                "epochs: 1\nevaluation: {}\nearlyStopping: {metric: validationAccuracy, patience: "
                "1}",
                "earlyStopping.metric: expected one of validationLoss, validationRmse, "
                "validationMae, validationR2, for the model's loss is meanSquaredError"},
        Mistake{"UnknownMetric", kModel,
                "{idx: {images: i, labels: l}}, validation: {idx: {images: i, labels: l}}",
                "epochs: 1\nevaluation: {}\nearlyStopping: {metric: accuracy, patience: 1}",
                "earlyStopping.metric: did you mean validationAccuracy or "
                "validationBalancedAccuracy? Expected one of validationLoss, validationAccuracy, "
                "validationBalancedAccuracy, "},
        Mistake{"MetricOfAnotherLoss", "{layers: [{dense: {units: 1}}], loss: huber}",
                "{syntheticLinear: {samples: 9}}, validation: {syntheticLinear: {samples: 9}}",
                "epochs: 1\nevaluation: {}\ncheckpoint: {bestOnly: {metric: "
                "validationBalancedAccuracy}}",
                "checkpoint.bestOnly.metric: expected one of validationLoss, validationRmse, "
                "validationMae, validationR2, for the model's loss is huber"},
        Mistake{"ThresholdOfNothing",
                "{layers: [{dense: {units: 1}}], loss: binaryCrossEntropy, lossOptions: "
                "{threshold: 1}}",
                "{syntheticLinear: {samples: 9}}", kRest,
                "model.lossOptions.threshold: expected a number above 0 and below 1"},
        Mistake{"DeltaOfAnotherLoss",
                "{layers: [{dense: {units: 1}}], loss: meanSquaredError, lossOptions: {delta: 2}}",
                "{syntheticLinear: {samples: 9}}", kRest,
                "model.lossOptions.delta: expected no such field for meanSquaredError (it belongs "
                "to huber), found 2"},
        Mistake{"DeltaBesideAName", "{name: linear-regression, lossOptions: {delta: 2}}",
                "{syntheticLinear: {samples: 9}}", kRest,
                "model.lossOptions: expected no lossOptions beside a model's name"},
        Mistake{"DeltaOfNothing",
                "{layers: [{dense: {units: 1}}], loss: huber, lossOptions: {delta: 0}}",
                "{syntheticLinear: {samples: 9}}", kRest,
                "model.lossOptions.delta: expected a number above 0"},
        Mistake{"ClassesForHuber", "{layers: [{dense: {units: 1}}], loss: huber}", kTrain, kRest,
                "data.train: expected numbers as targets, for the model's loss is huber"},
        Mistake{"UnknownLoss", "{layers: [{dense: {units: 1}}], loss: mse}",
                "{syntheticLinear: {samples: 9}}", kRest, "model.loss: expected one of"},
        Mistake{"KindOfLayer",
                "{layers: [{dence: {units: 3}}, {dense: {units: 10, inputs: [dense_1]}}]}", kTrain,
                kRest, "did you mean dense?"},
        Mistake{"TwoKindsOfLayer",
                "{layers: [{dense: {units: 3}}, {dense: {}, dropout: {}}, {dense: {units: 10}}]}",
                kTrain, kRest, "exactly 1 field, found 2 (dense, dropout)"},
        Mistake{"NameOfLayer",
                "{layers: [{dense: {units: 3, name: 1st}}, {dense: {units: 10, inputs: ['1st']}}]}",
                kTrain, kRest, "model.layers[0].dense.name: expected a string"},
        Mistake{"MisspeltInput",
                "{layers: [{dense: {units: 3, name: first}}, {dense: {units: 10, inputs: "
                "[fisrt]}}]}",
                kTrain, kRest, "did you mean first?"},
        Mistake{"MisspeltUnits", "{layers: [{dense: {unit: 10}}]}", kTrain, kRest,
                "did you mean units?"},
        Mistake{"Initializer",
                "{layers: [{dense: {units: 10, kernelInitializer: {name: norml, scale: 1}}}]}",
                kTrain, kRest, "did you mean normal?"},
        Mistake{"InitializerField",
                "{layers: [{dense: {units: 10, kernelInitializer: {nmae: normal, scale: 1}}}]}",
                kTrain, kRest, "did you mean name?"},
        Mistake{"Source", kModel, "{indx: {images: i, labels: l}}", kRest, "did you mean idx?"},
        Mistake{"NoSource", "{layers: [{dense: {units: 1}}], loss: meanSquaredError}", "{}", kRest,
                "data.train: expected exactly one of"},
        Mistake{"FieldOfSource", kModel, "{idx: {image: i, labels: l}}", kRest,
                "did you mean images?"},
        Mistake{"Shape", kLayers, "{syntheticClasses: {samples: 9, shape: [0], classes: 3}}", kRest,
                "shape[0]: expected"},
        Mistake{"Epochs", kModel, kTrain, "epoch: 1", "did you mean epochs?"},
        Mistake{"NeitherEpochsNorSteps", kModel, kTrain, "seed: 1", "exactly one of epochs, steps"},
        Mistake{"OptimizerName", kModel, kTrain, "epochs: 1\noptimizer: {name: sdg, momentum: 0.5}",
                "did you mean sgd?"},
        Mistake{"OptimizerField", kModel, kTrain,
                "epochs: 1\noptimizer: {nmae: sgd, momentum: 0.5}", "did you mean name?"},
        Mistake{"Momentum", kModel, kTrain,
                "epochs: 1\noptimizer: {name: sgd, momentum: 2, nesterov: true}",
                "optimizer.momentum: expected"},
        Mistake{"Policy", kModel, kTrain,
                "epochs: 1\nsynchronization: {policy: boundedStalenes, maxStaleness: 3}",
                "did you mean boundedStaleness?"},
        Mistake{
            "Boundaries", kModel, kTrain,
            "epochs: 1\nlearningRateSchedule: {piecewise: {boundaries: [x, 2], values: [1, 2, 3]}}",
            "boundaries[0]: expected an integer"},
        Mistake{"BatchSizeOfRemainder", kLayers,
                "{syntheticClasses: {samples: 9, shape: [3], classes: 10}}",
                "epochs: 1\ndropRemainder: true\nbatchSize: 2000000", "batchSize: expected an"}),
    [](const auto& info) { return info.param.name; });

TEST(Problems, AreToldByLineThoughTheyAreFoundInAnotherOrder) {
  EXPECT_THAT(problems_of("model: {layers: [{dense: {units: 3}}, {add: {inputs: [x, input]}}]}\n"
                          "epochs: 1\n"
                          "data:\n"
                          "  train: {}\n"
                          "batchSize: 0\n"
                          "steps: 1\n"
                          "sede: 1\n"),
              ElementsAre(HasSubstr("t.yaml:1: model.layers[1].add.inputs[0]"),
                          HasSubstr("t.yaml:1: expected exactly one of epochs, steps"),
                          HasSubstr("t.yaml:4: data.train"), HasSubstr("t.yaml:5: batchSize"),
                          HasSubstr("t.yaml:7: sede")));
}

TEST(TrainingAlone, IsAskedForWhereAWholeJobIsGiven) {
  const char* const expected =
      "t.yaml:1: expected a training block, found a whole TrainingJob; give what stands below its "
      "spec.training as a file of its own, or use muster run t.yaml";
  EXPECT_THAT(problems_of("apiVersion: muster.dev/v1alpha1\nkind: TrainingJob\nspec: {}\n"),
              ElementsAre(expected));
  EXPECT_THAT(problems_of("kind: TrainingJob\n"), ElementsAre(expected));
}

}  // namespace
}  // namespace muster::spec
