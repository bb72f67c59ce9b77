#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/documents/json.h"
#include "trainer/compute/loss.h"
#include "trainer/spec/open_classes.h"

namespace muster::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Six features, three classes, a hundred samples.
constexpr const char* kBase = R"(
model:
  layers:
    - dense: {name: a, units: 5}
    - dense: {name: b, units: 4}
    - dense: {name: c, units: 3}
data:
  train: {syntheticClasses: {samples: 100, shape: [2, 3], classes: 3}}
epochs: 2
)";

using Sets = std::vector<std::pair<std::string, std::string>>;

std::vector<std::string> problems_with(const Sets& sets, const LookUp& look_up = {}) {
  Document document = Document::parse(kBase, "t.yaml");
  for (const auto& [path, value] : sets) document.set(path, value);
  std::vector<std::string> texts;
  for (const Problem& problem : validate_training(document, look_up)) {
    texts.push_back(problem.text());
  }
  return texts;
}

struct Case {
  const char* name;
  Sets sets;
  const char* text;
};

class DoesNotFit : public testing::TestWithParam<Case> {};

TEST_P(DoesNotFit, IsOneProblemWithItsPath) {
  EXPECT_THAT(problems_with(GetParam().sets), ElementsAre(HasSubstr(GetParam().text)));
}

INSTANTIATE_TEST_SUITE_P(
    Table, DoesNotFit,
    testing::Values(
        Case{"AddOfTwoShapes",
             {{"model.layers[2]", "{add: {name: c, inputs: [a, b]}}"},
              {"model.layers[3]", "{dense: {units: 3}}"}},
             "model.layers[2].add.inputs: expected inputs of one shape, found a of [5] and b of "
             "[4]"},
        Case{"TwoMismatchesEachOnce",
             {{"model.layers[2]", "{add: {name: c, inputs: [a, b]}}"},
              {"model.layers[3]", "{add: {name: d, inputs: [b, c]}}"},
              {"model.layers[4]", "{dense: {units: 3}}"}},
             "model.layers[2].add.inputs"},
        Case{"TooManyWeights",
             {{"model.layers[0].dense.units", "1048576"},
              {"model.layers[1].dense.units", "1048576"}},
             "model.layers[1].dense.units: expected at most 2^32 weights, found a kernel of "
             "[1048576, 1048576]"},
        Case{"WindowLargerThanTheImage",
             {{"model.layers[0]", "{conv2d: {name: a, filters: 4}}"}},
             "model.layers[0].conv2d.padding: expected a window that fits into an image of "
             "[2, 3, 1], found a window of [3, 3] with valid padding"},
        Case{"PoolOfVectors",
             {{"model.layers[1]", "{maxPool: {name: b}}"}},
             "model.layers[1].maxPool.inputs: expected an image: [height, width, channels] or "
             "[height, width], found [5]"},
        Case{
            "ReshapedWrongly",
            {{"model.layers[0]", "{reshape: {name: a, shape: [4, -1]}}"}},
            "model.layers[0].reshape.shape: expected a shape of 6 elements, as the input of [2, 3] "
            "has, with at most one axis of -1, found [4, -1]"},
        Case{"FinalUnits",
             {{"model.layers[2].dense.units", "4"}},
             "t.yaml (--set): model.layers[2].dense.units: expected 3 outputs, one for each class, "
             "found 4"},
        Case{"FinalLayerWithoutUnits",
             {{"model.layers[3]", "{concatenate: {inputs: [b, c]}}"}},
             "model.layers[3].concatenate: expected 3 outputs, one for each class, found 7"},
        Case{"CropOfWhatIsNoFile",
             {{"data.train.augment", "[{randomCrop: {}}]"}},
             "data.train.augment[0].randomCrop: expected images from files (imageFolder, imageCsv, "
             "tfRecord or coco), found samples of [2, 3]"},
        Case{"ColourOfWhatIsNoFile",
             {{"data.train.augment", "[{flip: {}}, {colour: {}}]"}},
             "data.train.augment[1].colour: expected images from files"},
        Case{"ColourOfGreyImages",
             {{"data.train", "{imageFolder: {path: p, imageSize: [2, 3], channels: 1}}"},
              {"data.train.augment", "[{colour: {}}]"}},
             "data.train.augment[0].colour: expected images of 3 channels, found 1"},
        Case{"CropUpsideDown",
             {{"data.train", "{imageFolder: {path: p, imageSize: [2, 3], channels: 1}}"},
              {"data.train.augment", "[{randomCrop: {area: [0.5, 0.2]}}]"}},
             "data.train.augment[0].randomCrop.area: expected the least before the most"},
        Case{
            "FinalUnitsOfTargets",
            {{"data.train", "{syntheticLinear: {samples: 9}}"}, {"model.loss", "meanSquaredError"}},
            "model.layers[2].dense.units: expected 1 outputs, one for each number of a target"},
        Case{
            "FinalUnitsOfQuantiles",
            {{"data.train", "{syntheticLinear: {samples: 9}}"},
             {"model.loss", "quantile"},
             {"model.lossOptions", "{quantiles: [0.1, 0.9]}"}},
            "model.layers[2].dense.units: expected 2 outputs, one for each quantile of each number "
            "of a target"},
        Case{"SamplesOfAKnownModel",
             {{"model", "{name: mnist-mlp}"}},
             "data.train.syntheticClasses.shape: expected samples of 784 elements, as the model "
             "mnist-mlp takes, found 6 ([2, 3])"},
        Case{
            "ClassesOfAKnownModel",
            {{"model", "{name: mnist-mlp}"},
             {"data.train", "{syntheticClasses: {samples: 9, shape: [784], classes: 11}}"}},
            "data.train.syntheticClasses.classes: expected at most 10 classes, one for each output "
            "of the model, found 11"},
        Case{
            "SamplesOfValidation",
            {{"data.validation", "{syntheticClasses: {samples: 9, shape: [7], classes: 3}}"}},
            "data.validation.syntheticClasses.shape: expected samples of 6 elements, as data.train "
            "has, found 7 ([7])"},
        Case{"SamplesOfValidationTurned",
             {{"data.validation", "{syntheticClasses: {samples: 9, shape: [3, 2], classes: 3}}"}},
             "data.validation.syntheticClasses.shape: expected samples of [2, 3], as data.train "
             "has, found [3, 2]"},
        Case{"ClassesOfTest",
             {{"data.test", "{syntheticClasses: {samples: 9, shape: [6], classes: 4}}"}},
             "data.test.syntheticClasses.classes: expected at most 3 classes"},
        Case{"SkipPastTheEnd",
             {{"data.train.skip", "100"}},
             "data.train.skip: expected less than its 100 samples, found 100"},
        Case{"TakePastTheEnd",
             {{"data.train.skip", "40"}, {"data.train.take", "61"}},
             "data.train.take: expected from 1 to 60 (100 samples, 40 skipped), found 61"},
        Case{"AugmentedVectors",
             {{"data.train.syntheticClasses.shape", "[6]"}, {"data.train.augment", "[{flip: {}}]"}},
             "data.train.augment[0]: expected images: samples of height and width, or of height, "
             "width and channels, found samples of [6]"},
        Case{"ShiftedOutOfSight",
             {{"data.train.augment", "[{flip: {}}, {shift: {pixels: 2}}]"}},
             "data.train.augment[1].shift.pixels: expected fewer pixels than 2, for samples are of "
             "[2, 3], found 2"},
        Case{"EmptyPart",
             {{"data.train.take", "3"}, {"data.train.split", "{fraction: 0.2}"}},
             "data.train.split: expected a part with at least one of 3 samples, found none in the "
             "first part of fraction 0.2"},
        Case{"NoFullBatch",
             {{"batchSize", "51"}, {"data.train.take", "50"}, {"dropRemainder", "true"}},
             "batchSize: expected at most 50, the samples of data.train, for dropRemainder leaves "
             "out a batch that is not full, found 51"}),
    [](const auto& info) { return info.param.name; });

TEST(Fit, AcceptsWhatFits) {
  const Sets cases[] = {
      {},
      {{"data.validation", "{syntheticClasses: {samples: 9, shape: [6], classes: 2}}"}},
      {{"batchSize", "100"}, {"dropRemainder", "true"}},
      {{"model.layers[1].dense.units", "5"},
       {"model.layers[2]", "{add: {inputs: [a, b]}}"},
       {"model.layers[3]", "{dense: {units: 3}}"}},
      {{"data.train", "{idx: {images: i, labels: l}}"}, {"model.layers[2].dense.units", "77"}},
      {{"model.layers[0]", "{conv2d: {name: a, filters: 4, padding: same, size: [2]}}"},
       {"model.layers[1]", "{reshape: {name: b, shape: [2, -1, 3]}}"},
       {"model.layers[2]", "{globalAveragePool: {}}"}},
  };
  for (const Sets& sets : cases) EXPECT_THAT(problems_with(sets), IsEmpty());
}

TEST(Fit, FindsWhatDoesNotDependOnDataThatAreNotKnown) {
  EXPECT_THAT(problems_with({{"data.train", "{idx: {images: i, labels: l}}"},
                             {"model.layers[2]", "{add: {inputs: [input, a, b]}}"}}),
              ElementsAre(HasSubstr("found a of [5] and b of [4]")));
}

// Files as they might be found; of others nothing is known.
LookUp images(uint64_t samples, std::vector<int64_t> shape, int64_t labels) {
  return [=](const std::string& part, const DataSource& source) -> std::optional<DataFacts> {
    if (part != "train") return std::nullopt;
    EXPECT_EQ(source.idx()->files.at(0).images, "i");
    return DataFacts{samples, shape, labels, "label 9 of sample 4 of l", "", {}};
  };
}

TEST(Fit, UsesWhatFilesSayOfThemselves) {
  const Sets mnist = {{"model", "{name: mnist-mlp}"},
                      {"data.train", "{idx: {images: i, labels: l}, take: 50}"}};
  EXPECT_THAT(problems_with(mnist, images(60, {28, 28}, 10)), IsEmpty());
  EXPECT_THAT(problems_with(mnist, images(40, {28, 28}, 10)),
              ElementsAre(HasSubstr("data.train.take: expected from 1 to 40")));
  EXPECT_THAT(problems_with(mnist, images(60, {32, 32}, 10)),
              ElementsAre(HasSubstr("data.train.idx.images: expected samples of 784 elements, as "
                                    "the model mnist-mlp takes, found 1024 ([32, 32])")));
  EXPECT_THAT(problems_with(mnist, images(60, {784}, 10)), IsEmpty());
  EXPECT_THAT(problems_with(mnist, images(60, {14, 56}, 10)),
              ElementsAre(HasSubstr("data.train.idx.images: expected samples of [28, 28], as the "
                                    "model mnist-mlp takes, found [14, 56]")));
  EXPECT_THAT(problems_with(mnist, images(60, {28, 28}, 12)),
              ElementsAre(HasSubstr("data.train.idx.labels: expected at most 10 classes, one for "
                                    "each output of the model, found label 9 of sample 4 of l")));
}

// The manifest alone says enough of images to check their shape.
TEST(Fit, KnowsTheShapeOfImagesWithoutTheirFiles) {
  const Sets small = {{"model", "{name: mnist-mlp}"},
                      {"data.train", "{imageFolder: {path: p, imageSize: [28, 28], channels: 1}}"}};
  EXPECT_THAT(problems_with(small), IsEmpty());
  Sets sideways = small;
  sideways.emplace_back("data.train.imageFolder.imageSize", "[14, 56]");
  EXPECT_THAT(problems_with(sideways),
              ElementsAre(HasSubstr("expected samples of [28, 28], as the model mnist-mlp takes, "
                                    "found [14, 56, 1]")));
  Sets large = small;
  large.emplace_back("data.train.imageFolder.channels", "3");
  EXPECT_THAT(problems_with(large),
              ElementsAre(HasSubstr("data.train.imageFolder.imageSize: expected samples of 784 "
                                    "elements, as the model mnist-mlp takes, found 2352 ([28, 28, "
                                    "3])")));
  const Sets csv = {
      {"data.train", "{imageCsv: {file: f, imageSize: [2, 1], classes: [a, b, c, d]}}"}};
  EXPECT_THAT(problems_with(csv),
              ElementsAre(HasSubstr("model.layers[2].dense.units: expected 4 outputs")));
}

LookUp classes(const std::vector<std::string>& train, const std::vector<std::string>& validation) {
  return [=](const std::string& part, const DataSource& source) -> std::optional<DataFacts> {
    const std::vector<std::string>& names = part == "train" ? train : validation;
    return DataFacts{9,    source.images()->shape(), static_cast<int64_t>(names.size()), "", "",
                     names};
  };
}

TEST(Fit, WantsTheSameClassesToTrainAndToValidate) {
  const Sets sets = {{"data.train", "{imageFolder: {path: p, imageSize: [2, 1]}}"},
                     {"data.validation", "{imageFolder: {path: q, imageSize: [2, 1]}}"}};
  EXPECT_THAT(problems_with(sets, classes({"a", "b", "c"}, {"a", "b", "c"})), IsEmpty());
  EXPECT_THAT(problems_with(sets, classes({"a", "b", "c"}, {"a", "c"})),
              ElementsAre(HasSubstr("data.validation.imageFolder.path: expected the classes of "
                                    "data.train: 3 classes, of which number 1 is \"b\", found 2 "
                                    "classes, of which number 1 is \"c\"")));
}

// Returns the number of classes of a model of the catalogue on a folder of images; 0 if it is not
// known.
int64_t classes_on_data(const Sets& sets, const LookUp& look_up) {
  Document document = Document::parse(kBase, "t.yaml");
  for (const auto& [path, value] : sets) document.set(path, value);
  EXPECT_THAT(validate_training(document, look_up), IsEmpty());
  const auto model = model_on_data(document, "", look_up);
  Json training = document.value();
  fill_in_classes(training, look_up);
  const int64_t filled_in = integer_or(training["model"], "classes", 0);
  if (!model) return filled_in;
  const auto* detector = std::get_if<compute::SsdLoss>(&model->loss);
  EXPECT_EQ(detector != nullptr ? detector->classes : model->label_count, filled_in);
  return filled_in;
}

TEST(Fit, TakesTheClassesOfAModelFromTheTrainingDataIfTheyAreLeftOpen) {
  const LookUp none = [](const std::string&, const DataSource&) { return std::nullopt; };
  const LookUp three = classes({"a", "b", "c"}, {"a", "b", "c"});
  const Sets folders = {{"model", "{name: mobilenet-v1}"},
                        {"data.train", "{imageFolder: {path: p, imageSize: [32, 32]}}"},
                        {"data.validation", "{imageFolder: {path: q, imageSize: [32, 32]}}"}};
  EXPECT_EQ(classes_on_data(folders, three), 3);
  EXPECT_EQ(classes_on_data(folders, none), 0);
  Sets given = folders;
  given.emplace_back("model.classes", "7");
  EXPECT_EQ(classes_on_data(given, three), 7);
  const Sets objects = {{"model", "{name: ssd-mobilenet-v1, depthMultiplier: 0.25}"},
                        {"data.train", "{coco: {annotations: a, folder: f, imageSize: [64, 64]}}"}};
  EXPECT_EQ(classes_on_data(objects, three), 3);
  const Sets list = {{"model", "{name: mobilenet-v1}"},
                     {"data.train", "{imageCsv: {file: f, imageSize: [32, 32], classes: [a, b]}}"}};
  EXPECT_EQ(classes_on_data(list, none), 2);
  const Sets synthetic = {
      {"model", "{name: mobilenet-v1}"},
      {"data.train", "{syntheticClasses: {samples: 9, shape: [32, 32, 3], classes: 5}}"}};
  EXPECT_EQ(classes_on_data(synthetic, none), 5);
}

TEST(Fit, AsksForTheClassesOfAModelThatTheDataDoNotSay) {
  Sets records = {{"model", "{name: mobilenet-v1}"},
                  {"data.train", "{tfRecord: {files: p, imageSize: [32, 32]}}"}};
  EXPECT_THAT(problems_with(records, classes({}, {})),
              ElementsAre("t.yaml (--set): model.classes: expected a number of classes, since "
                          "data.train does not say how many there are, found none"));
  records.emplace_back("model.classes", "4");
  EXPECT_THAT(problems_with(records, classes({}, {})), IsEmpty());
}

// Without the files of data.train nobody knows how many classes are too many.
TEST(Fit, RefusesNoClassesOfOtherDataWhileThoseOfTheModelAreOpen) {
  const LookUp validation = [](const std::string& part,
                               const DataSource& source) -> std::optional<DataFacts> {
    if (part == "train") return std::nullopt;
    return DataFacts{9, source.images()->shape(), 2000, "", "", {}};
  };
  const Sets sets = {{"model", "{name: mobilenet-v1}"},
                     {"data.train", "{imageFolder: {path: p, imageSize: [32, 32]}}"},
                     {"data.validation", "{imageFolder: {path: q, imageSize: [32, 32]}}"}};
  EXPECT_THAT(problems_with(sets, validation), IsEmpty());
}

TEST(Fit, TellsRecordsHowManyClassesTheModelHas) {
  std::vector<int64_t> most;
  const LookUp look = [&](const std::string&, const DataSource& source) {
    most.push_back(std::get<RecordSource>(source.kind).model_classes);
    return std::optional<DataFacts>();
  };
  const std::string records = "tfRecord: {files: p, labels: objects, imageSize: [64, 64]";
  problems_with({{"model", "{name: ssd-mobilenet-v1, classes: 3}"},
                 {"data.train", "{" + records + "}}"},
                 {"data.validation", "{" + records + ", labelMap: m}}"}},
                look);
  EXPECT_THAT(most, ElementsAre(3, 3));
}

TEST(Fit, RefusesMetricsForWhichTheValidationDataHaveNoObjects) {
  const auto look = [](DataFacts validation) -> LookUp {
    return [=](const std::string& part, const DataSource& source) {
      DataFacts facts = part == "validation" ? validation : DataFacts();
      facts.sample_shape = source.images()->shape();
      return std::optional(facts);
    };
  };
  DataFacts no_small, none;
  no_small.sizes_without_objects = {"Small"};
  none.without_objects = true;
  const std::string coco = "{coco: {annotations: a, folder: f, imageSize: [300, 300]}}";
  const Sets detector = {{"model", "{name: ssd-mobilenet-v1, classes: 3}"},
                         {"data.train", coco},
                         {"data.validation", coco},
                         {"evaluation", "{everyEpochs: 1}"}};
  const auto with = [&](const char* field, const std::string& rule) {
    Sets sets = detector;
    sets.emplace_back(field, rule);
    return sets;
  };
  const char* kSmall = "validationAveragePrecisionSmall";
  const std::pair<const char*, std::string> rules[] = {
      {"earlyStopping", fmt::format("{{metric: {}, patience: 1}}", kSmall)},
      {"checkpoint.bestOnly", fmt::format("{{metric: {}}}", kSmall)},
      {"stopWhen", fmt::format("{{metric: {}, atLeast: 0.5}}", kSmall)}};
  for (const auto& [field, rule] : rules) {
    EXPECT_THAT(
        problems_with(with(field, rule), look(no_small)),
        ElementsAre(HasSubstr(std::string(field) +
                              ".metric: expected a metric that data.validation can give, found "
                              "\"validationAveragePrecisionSmall\", for which its ")));
    EXPECT_THAT(problems_with(with(field, rule), look({})), IsEmpty());
  }
  EXPECT_THAT(problems_with(with("earlyStopping", "{patience: 1}"), look(no_small)), IsEmpty());
  EXPECT_THAT(problems_with(with("earlyStopping", "{patience: 1}"), look(none)),
              ElementsAre(HasSubstr("earlyStopping.metric: expected a metric that")));
  EXPECT_THAT(problems_with(with("stopWhen", "{metric: trainLoss, atMost: 0.5}"), look(none)),
              IsEmpty());
}

TEST(Fit, ReportsFilesThatCannotBeRead) {
  const LookUp damaged = [](const std::string&, const DataSource&) {
    DataFacts facts;
    facts.malformed = "i: truncated";
    return std::optional(facts);
  };
  EXPECT_THAT(problems_with({{"data.train", "{idx: {images: i, labels: l}}"}}, damaged),
              ElementsAre("t.yaml (--set): data.train.idx: expected IDX files that can be read, "
                          "found i: truncated"));
  // A file of several parts is reported once.
  EXPECT_THAT(problems_with({{"data.train", "{idx: {images: i, labels: l}}"},
                             {"data.validation", "{idx: {images: i, labels: l}}"}},
                            damaged),
              ElementsAre(HasSubstr("data.train.idx: expected IDX files that can be read")));
}

TEST(Notes, TellWhatIsHardlyMeant) {
  const struct {
    Sets sets;
    const char* note;  // nullptr: none
  } cases[] = {
      {{}, nullptr},
      {{{"model.layers[2].dense.activation", "softmax"}}, "it is computed once"},
      {{{"model.layers[3]", "{activation: {function: softmax}}"}}, "it is computed once"},
      {{{"model.layers[2].dense.activation", "softmax"},
        {"model.layers[3]", "{activation: {function: softmax}}"}},
       "model.layers[3]: the loss softmaxCrossEntropy takes the softmax of what is a softmax"},
      {{{"model.layers[2].dense.activation", "softmax"},
        {"model.layers[3]", "{dropout: {rate: 0.5}}"}},
       "learns slowly"},
      {{{"model.layers[0].dense.activation", "softmax"}}, nullptr},
      {{{"model", "{layers: [{dense: {units: 1, activation: sigmoid}}], loss: binaryCrossEntropy}"},
        {"data.train", "{syntheticLinear: {samples: 99}}"}},
       "this sigmoid is the one that the loss binaryCrossEntropy takes"},
      {{{"model",
         "{layers: [{dense: {units: 1, activation: sigmoid}}, {activation: {function: sigmoid}}], "
         "loss: binaryCrossEntropy}"},
        {"data.train", "{syntheticLinear: {samples: 99}}"}},
       "takes the sigmoid of what is a sigmoid already"},
      {{{"model", "{name: mnist-mlp}"},
        {"data.train", "{syntheticClasses: {samples: 99, shape: [784], classes: 10}}"}},
       nullptr},
      {{{"batchSize", "51"}, {"data.train.take", "50"}},
       "batchSize: 51 is more than the 50 samples of data.train: a batch is a whole epoch"},
      {{{"batchSize", "50"}, {"data.train.take", "50"}}, nullptr},
      {{{"model", "{name: mnist-mlp}"},
        {"data.train", "{idx: {images: i, labels: l}}"},
        {"data.validation", "{idx: {images: i, labels: l, scale: 1}}"}},
       "data.validation.idx: its pixels are scaled otherwise than those of data.train: * 1 + 0, "
       "and not * 0.00392157 + 0"},
      {{{"model", "{name: mnist-mlp}"},
        {"data.train", "{idx: {images: i, labels: l}}"},
        {"data.test", "{imageFolder: {path: p, imageSize: [28, 28], channels: 1}}"}},
       nullptr},
      {{{"model", "{name: mnist-mlp}"},
        {"data.train", "{idx: {images: i, labels: l}}"},
        {"data.test", "{imageFolder: {path: p, imageSize: [28, 28], channels: 1, offset: -0.5}}"}},
       "data.test.imageFolder: its pixels are scaled otherwise"},
      {{{"model", "{name: mnist-mlp}"},
        {"data.train", "{idx: {images: i, labels: l, scale: 1}}"},
        {"data.validation", "{syntheticClasses: {samples: 99, shape: [784], classes: 10}}"}},
       nullptr},
      {{{"stopWhen", "{metric: trainLoss, atLeast: 0.01}"}},
       "stopWhen: trainLoss falls while a model learns, so that atLeast may end the training after "
       "its first epoch; atMost ends it"},
      {{{"model", "{name: mnist-mlp}"},
        {"data.train", "{idx: {images: i, labels: l}}"},
        {"data.validation", "{idx: {images: i, labels: l}}"},
        {"evaluation", "{everyEpochs: 1}"},
        {"stopWhen", "{metric: validationAccuracy, atMost: 0.9}"}},
       "validationAccuracy rises while a model learns, so that atMost may end the training after "
       "its first evaluation; atLeast ends it"},
      {{{"stopWhen", "{metric: trainLoss, atMost: 0.01}"}}, nullptr},
  };
  for (const auto& item : cases) {
    Document document = Document::parse(kBase, "t.yaml");
    for (const auto& [path, value] : item.sets) document.set(path, value);
    for (const Problem& problem : validate_training(document)) ADD_FAILURE() << problem.text();
    const auto notes = training_notes(document, "");
    if (item.note == nullptr) {
      EXPECT_THAT(notes, IsEmpty());
    } else {
      EXPECT_THAT(notes, ElementsAre(HasSubstr(item.note)));
    }
  }
}

}  // namespace
}  // namespace muster::spec
