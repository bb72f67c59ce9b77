#include "trainer/spec/training_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <set>

#include "common/error.h"
#include "common/system/file.h"
#include "trainer/compute/models/catalogue.h"
#include "trainer/spec/check.h"
#include "trainer/spec/convert.h"
#include "trainer/spec/schema.h"

namespace muster::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kTraining = R"(
model: {name: mnist-mlp}
data:
  train: {idx: {images: i, labels: l}}
epochs: 2
)";

// kTraining with `sets` ("path=value") applied, checked; the problems as text.
std::vector<std::string> problems_of(const std::vector<std::pair<std::string, std::string>>& sets,
                                     Document* result = nullptr) {
  Document document = Document::parse(kTraining, "training.yaml");
  for (const auto& [path, value] : sets) document.set(path, value);
  std::vector<std::string> texts;
  for (const Problem& problem : validate_training(document)) texts.push_back(problem.text());
  if (result != nullptr) *result = document;
  return texts;
}

TrainingSpec spec_with(const std::vector<std::pair<std::string, std::string>>& sets) {
  Document document = Document::parse("", "");
  const auto problems = problems_of(sets, &document);
  EXPECT_TRUE(problems.empty()) << problems.front();
  return to_training_spec(document.value());
}

// Every node of a schema that describes a value.
void for_each_schema(const Json& schema, const std::string& path,
                     const std::function<void(const Json&, const std::string&)>& visit) {
  visit(schema, path);
  if (schema.contains("properties")) {
    for (const auto& [name, property] : schema["properties"].items()) {
      for_each_schema(property, child_path(path, name), visit);
    }
  }
  if (schema.contains("items")) for_each_schema(schema["items"], path + "[]", visit);
}

TEST(TrainingSchema, IsStructuralAndDescribesEveryField) {
  for_each_schema(training_schema(), "", [](const Json& schema, const std::string& path) {
    EXPECT_NE(schema.contains("type"), schema.contains("x-kubernetes-int-or-string")) << path;
    EXPECT_TRUE(schema.contains("description")) << path;
    EXPECT_EQ(schema.value("type", "") == "array", schema.contains("items")) << path;
    for (const char* banned : {"$ref", "oneOf", "anyOf", "definitions"}) {
      EXPECT_FALSE(schema.contains(banned)) << path;
    }
  });
}

TEST(TrainingSchema, HasDefaultsThatFitIt) {
  for_each_schema(training_schema(), "", [](const Json& schema, const std::string& path) {
    if (!schema.contains("default")) return;
    Document document = Document::parse("{}", "default");
    document.value()["value"] = schema["default"];
    const Json holder = {{"type", "object"}, {"properties", {{"value", schema}}}};
    EXPECT_TRUE(apply_schema(holder, document).empty()) << path;
  });
}

TEST(TrainingSchema, KnowsExactlyTheModelsOfTheCatalogue) {
  const Json& names = training_schema()["properties"]["model"]["properties"]["name"]["enum"];
  EXPECT_EQ(names.get<std::vector<std::string>>(), compute::model_names());
  for (const std::string& name : compute::model_names()) {
    ASSERT_TRUE(compute::find_model(name)) << name;
    EXPECT_EQ(compute::find_model(name)->name, name);
  }
  EXPECT_FALSE(compute::find_model("resnet"));
}

TEST(TrainingSpec, SaysWhatIsShownAndExported) {
  const TrainingSpec spec =
      spec_with({{"summary", "{everySteps: 7, pictures: 0}"}, {"export", "{onnx: false}"}});
  EXPECT_EQ(spec.summary_every_steps, 7u);
  EXPECT_EQ(spec.summary_pictures, 0u);
  EXPECT_FALSE(spec.export_onnx);
}

TEST(TrainingSpec, DefaultsAreWhatTheDocumentationSays) {
  const TrainingSpec spec = spec_with({});
  EXPECT_EQ(spec.model.name, "mnist-mlp");
  EXPECT_EQ(spec.batch_size, 32);
  EXPECT_EQ(spec.epochs, 2u);
  EXPECT_FALSE(spec.steps);
  EXPECT_TRUE(std::holds_alternative<compute::Adam>(spec.optimizer.kind));
  EXPECT_DOUBLE_EQ(spec.schedule.learning_rate, 0.001);
  EXPECT_TRUE(std::holds_alternative<compute::Constant>(spec.schedule.shape));
  EXPECT_EQ(spec.policy, SyncPolicy::sync);
  EXPECT_EQ(spec.checkpoint.every_seconds, 60.0);
  EXPECT_FALSE(spec.checkpoint.bytes_per_second);
  EXPECT_FALSE(spec.checkpoint.every_steps);
  EXPECT_EQ(spec.checkpoint.keep, 5);
  EXPECT_EQ(spec.summary_pictures, 4u);
  EXPECT_TRUE(spec.export_onnx);
  EXPECT_TRUE(spec.data.train.shuffle);
  EXPECT_TRUE(spec.data.train.cache);
  EXPECT_EQ(spec.data.train.take, -1);
  EXPECT_FLOAT_EQ(spec.data.train.idx()->scale, 1.0f / 255.0f);
  EXPECT_FALSE(spec.data.validation);
  EXPECT_FALSE(spec.strict_determinism);
}

DataSource source_with(const std::string& train) {
  return spec_with({{"model", "{layers: [{dense: {units: 3}}]}"}, {"data.train", train}})
      .data.train;
}

TEST(TrainingSpec, ReadsSourcesOfImages) {
  const ImageSettings images =
      *source_with("{imageFolder: {path: p, imageSize: [28, 28]}}").images();
  EXPECT_THAT(images.shape(), ElementsAre(28, 28, 3));
  EXPECT_FLOAT_EQ(images.scale, 1.0f / 255);
  EXPECT_EQ(images.offset, 0.0f);
  EXPECT_EQ(images.max_corrupt, 0.01);
  const ImageSettings others =
      *source_with(
           "{imageFolder: {path: p, imageSize: [4, 5], channels: 1, scale: 0.5, offset: -1, "
           "maxCorrupt: 0}}")
           .images();
  EXPECT_THAT(others.shape(), ElementsAre(4, 5, 1));
  EXPECT_EQ(others.scale, 0.5f);
  EXPECT_EQ(others.offset, -1.0f);
  EXPECT_EQ(others.max_corrupt, 0.0);

  const DataSource csv = source_with(
      "{imageCsv: {file: f, folder: g, classes: [a, b, c], imageSize: [28, 28], channels: 1}}");
  const auto& list = std::get<ImageCsvSource>(csv.kind);
  EXPECT_EQ(list.file, "f");
  EXPECT_EQ(list.folder, "g");
  EXPECT_THAT(list.classes, ElementsAre("a", "b", "c"));
  EXPECT_EQ(below("/m", csv).images()->channels, 1);
  EXPECT_THAT(paths_of(below("/m", csv)), ElementsAre("/m/f", "/m/g"));

  const DataSource records =
      source_with("{tfRecord: {files: 'train-*', imageSize: [28, 28]}, shard: file}");
  const auto& record = std::get<RecordSource>(records.kind);
  EXPECT_THAT(record.files, ElementsAre("train-*"));
  EXPECT_EQ(record.file_field(0), "files");
  const DataSource listed =
      source_with("{tfRecord: {fileList: [a, 'b-*'], labelMap: m, imageSize: [28, 28]}}");
  EXPECT_THAT(paths_of(below("/m", listed)), ElementsAre("/m/a", "/m/b-*", "/m/m"));
  EXPECT_EQ(std::get<RecordSource>(listed.kind).name(), "a and 1 more");
  EXPECT_EQ(std::get<RecordSource>(listed.kind).file_field(1), "fileList[1]");
  EXPECT_EQ(record.label_map, "");
  EXPECT_EQ(record.first_label, 1);
  EXPECT_EQ(record.image_key, "image/encoded");
  EXPECT_EQ(record.label_key, "image/class/label");
  EXPECT_THAT(paths_of(below("/m", records)), ElementsAre("/m/train-*"));
}

TEST(TrainingSpec, ReadsTables) {
  const DataSource source = source_with(
      "{table: {files: '*.csv', separator: \"\\t\", decimal: ',', header: false, mixed: true, "
      "features: [{columns: [a, b], transform: log, missing: flag}, "
      "{columns: [c], kind: category, mostValues: 7}], target: {column: z}}}");
  const TableSource& table = *source.table();
  EXPECT_THAT(paths_of(below("/m", source)), ElementsAre("/m/*.csv"));
  EXPECT_EQ(table.format.separator, '\t');
  EXPECT_EQ(table.format.decimal, ',');
  EXPECT_FALSE(table.format.header);
  EXPECT_EQ(table.order, RowOrder::mixed);
  ASSERT_EQ(table.features.size(), 2u);
  EXPECT_THAT(table.features[0].columns, ElementsAre("a", "b"));
  EXPECT_EQ(table.features[0].kind, std::nullopt);
  EXPECT_EQ(table.features[0].transform, Transform::log);
  EXPECT_EQ(table.features[0].missing, Missing::flag);
  EXPECT_EQ(table.features[1].kind, FeatureKind::category);
  EXPECT_EQ(table.features[1].most_values, 7);
  EXPECT_THAT(table.target.columns, ElementsAre("z"));
  EXPECT_TRUE(table.target.is_class);
  const DataSource more = source_with(
      "{table: {files: a, groupBy: g, features: [{columns: [a], least: -1, most: 2.5, transform: "
      "buckets, buckets: 4}, {columns: [b], kind: categories, separator: '|', spareValues: 3}, "
      "{columns: [c], kind: vector}, {columns: [d], kind: category, hashBuckets: 9}], "
      "target: {column: z}}}");
  const TableSource& other = *more.table();
  EXPECT_EQ(other.order, RowOrder::by_group);
  EXPECT_EQ(other.order_column, "g");
  EXPECT_EQ(other.features[0].least, -1);
  EXPECT_EQ(other.features[0].most, 2.5);
  EXPECT_EQ(other.features[0].transform, Transform::buckets);
  EXPECT_EQ(other.features[0].buckets, 4);
  EXPECT_EQ(other.features[1].kind, FeatureKind::categories);
  EXPECT_EQ(other.features[1].separator, "|");
  EXPECT_EQ(other.features[1].spare_values, 3);
  EXPECT_EQ(other.features[2].kind, FeatureKind::vector);
  EXPECT_EQ(other.features[3].hash_buckets, 9);
  const DataSource listed = source_with("{table: {fileList: [a.csv, b.csv], target: {column: z}}}");
  EXPECT_EQ(listed.table()->name(), "a.csv and 1 more");
  EXPECT_EQ(listed.table()->file_field(1), "fileList[1]");
}

TEST(TrainingSpec, EvaluatesTablesAsTheyAreTrainedOn) {
  const TrainingSpec spec =
      spec_with({{"model", "{layers: [{dense: {units: 1}}], loss: huber}"},
                 {"data.train", "{table: {files: a, target: {columns: [p, z]}}}"},
                 {"data.validation", "{table: {files: b}}"}});
  EXPECT_THAT(spec.data.train.table()->target.columns, ElementsAre("p", "z"));
  EXPECT_FALSE(spec.data.train.table()->target.is_class);  // the loss decides
  EXPECT_EQ(spec.data.train.table()->trained_on, nullptr);
  const DataSource validation = below("/m", *spec.data.validation);
  ASSERT_NE(validation.table()->trained_on, nullptr);
  EXPECT_THAT(paths_of(validation), ElementsAre("/m/b"));
  EXPECT_THAT(paths_of(*validation.table()->trained_on), ElementsAre("/m/a"));
}

TEST(TrainingSpec, ReadsStagesForImages) {
  const auto stages = [](const std::string& augment) {
    return source_with("{imageFolder: {path: p, imageSize: [28, 28]}, augment: " + augment + "}")
        .augment;
  };
  const auto by_default = stages("[{randomCrop: {}}, {colour: {}}]");
  ASSERT_EQ(by_default.size(), 2u);
  EXPECT_EQ(std::get<RandomCrop>(by_default[0]).area, (Range{0.08, 1}));
  EXPECT_EQ(std::get<RandomCrop>(by_default[0]).aspect, (Range{3.0 / 4, 4.0 / 3}));
  EXPECT_EQ(std::get<Colour>(by_default[1]).brightness, 32.0 / 255);
  EXPECT_EQ(std::get<Colour>(by_default[1]).saturation, (Range{0.5, 1.5}));
  EXPECT_EQ(std::get<Colour>(by_default[1]).hue, 0.2);
  EXPECT_EQ(std::get<Colour>(by_default[1]).contrast, (Range{0.5, 1.5}));
  const auto written = stages(
      "[{randomCrop: {area: [0.5, 0.7], aspect: [1, 2]}}, {colour: {brightness: 0, saturation: [1, "
      "1], hue: 0.5, contrast: [0, 3]}}]");
  EXPECT_EQ(std::get<RandomCrop>(written[0]).area, (Range{0.5, 0.7}));
  EXPECT_EQ(std::get<RandomCrop>(written[0]).aspect, (Range{1, 2}));
  EXPECT_EQ(std::get<Colour>(written[1]).brightness, 0);
  EXPECT_EQ(std::get<Colour>(written[1]).saturation, (Range{1, 1}));
  EXPECT_EQ(std::get<Colour>(written[1]).hue, 0.5);
  EXPECT_EQ(std::get<Colour>(written[1]).contrast, (Range{0, 3}));
}

TEST(TrainingSpec, ReadsWhatIsWritten) {
  const TrainingSpec spec = spec_with({
      {"model",
       "{layers: [{dense: {units: 4, activation: relu, useBias: false, trainable: false, "
       "kernelInitializer: {name: normal, scale: 0.5}}}, {dropout: {rate: 0.25}}, "
       "{activation: {function: sigmoid}}, {dense: {units: 3}}]}"},
      {"data.train",
       "{syntheticClasses: {samples: 100, shape: [2, 3], classes: 3, density: 0.5, "
       "seed: 9}, skip: 5, take: 50, split: {fraction: 0.8, part: rest}, "
       "shuffle: false, cache: false, prefetch: 7, augment: [{shift: {}}, {flip: {probability: "
       "0.25}}]}"},
      {"data.test", "{syntheticClasses: {samples: 10, shape: [2, 3], classes: 3}}"},
      {"epochs", "null"},
      {"steps", "1e3"},
      {"optimizer", "{name: momentum, learningRate: 0.5, nesterov: true}"},
      {"learningRateSchedule",
       "{piecewise: {boundaries: [10, 20], values: [1, 0.1, 0]}, warmupSteps: 3}"},
      {"synchronization.policy", "async"},
      {"checkpoint", "{everySeconds: null, everySteps: 7, keep: 2, megabytesPerSecond: 2.5}"},
      {"dropRemainder", "true"},
      {"batchSize", "10"},
      {"determinism", "strict"},
      {"initializeFrom", "old"},
  });
  ASSERT_EQ(spec.model.layers.size(), 4u);
  EXPECT_EQ(spec.model.layers[0].name, "dense_1");
  EXPECT_EQ(spec.model.layers[1].name, "dropout_1");
  EXPECT_EQ(spec.model.layers[2].name, "activation_1");
  EXPECT_EQ(spec.model.layers[3].name, "dense_2");
  EXPECT_FALSE(spec.model.layers[0].trainable);
  const auto& dense = std::get<compute::Dense>(spec.model.layers[0].kind);
  EXPECT_EQ(dense.units, 4);
  EXPECT_FALSE(dense.use_bias);
  EXPECT_EQ(dense.activation, compute::Activation::relu);
  EXPECT_EQ(dense.kernel_initializer.kind, compute::InitializerKind::normal);
  EXPECT_FLOAT_EQ(dense.kernel_initializer.scale, 0.5f);
  EXPECT_FLOAT_EQ(std::get<compute::Dropout>(spec.model.layers[1].kind).rate, 0.25f);
  const DataSource& train = spec.data.train;
  ASSERT_EQ(train.augment.size(), 2u);
  EXPECT_EQ(std::get<Shift>(train.augment[0]).pixels, 1);
  EXPECT_EQ(std::get<Flip>(train.augment[1]).probability, 0.25);
  const auto& classes = std::get<ClassesSource>(train.kind);
  EXPECT_THAT(classes.shape, ElementsAre(2, 3));
  EXPECT_EQ(classes.seed, 9u);
  EXPECT_EQ(train.skip, 5);
  EXPECT_EQ(train.take, 50);
  EXPECT_EQ(train.split_fraction, 0.8);
  EXPECT_EQ(train.split_part, SplitPart::rest);
  EXPECT_FALSE(train.shuffle);
  EXPECT_FALSE(train.cache);
  EXPECT_EQ(train.prefetch, 7);
  EXPECT_FALSE(spec.data.test->shuffle);
  EXPECT_EQ(spec.steps, 1000u);
  const auto& sgd = std::get<compute::Sgd>(spec.optimizer.kind);
  EXPECT_FLOAT_EQ(sgd.momentum, 0.9f);
  EXPECT_TRUE(sgd.nesterov);
  EXPECT_EQ(spec.schedule.warmup_steps, 3u);
  EXPECT_THAT(std::get<compute::Piecewise>(spec.schedule.shape).boundaries, ElementsAre(10u, 20u));
  EXPECT_EQ(spec.policy, SyncPolicy::async);
  EXPECT_FALSE(spec.checkpoint.every_seconds);
  EXPECT_EQ(spec.checkpoint.every_steps, 7u);
  EXPECT_EQ(spec.checkpoint.bytes_per_second, 2.5e6);
  EXPECT_TRUE(spec.data.drop_remainder);
  EXPECT_TRUE(spec.strict_determinism);
  EXPECT_EQ(spec.initialize_from, "old");
}

// Whoever adds a name to the schema is told that it has no meaning yet.
TEST(TrainingSpec, KnowsEveryNameOfTheSchema) {
  const Json& properties = training_schema()["properties"];
  const auto names = [](const Json& object, const char* field) -> const Json& {
    return object["properties"][field]["enum"];
  };
  std::set<size_t> optimizers, losses, layers;
  std::set<SyncPolicy> policies;
  for (const Json& name : names(properties["optimizer"], "name"))
    optimizers.insert(
        spec_with({{"optimizer.name", name.get<std::string>()}}).optimizer.kind.index());
  EXPECT_EQ(optimizers.size(), std::variant_size_v<compute::OptimizerKind>);
  for (const Json& name : names(properties["model"], "loss"))
    losses.insert(to_loss(Json{{"loss", name}}).index());
  EXPECT_EQ(losses.size(), names(properties["model"], "loss").size());
  for (const Json& name : names(properties["synchronization"], "policy"))
    policies.insert(spec_with({{"synchronization.policy", name.get<std::string>()}}).policy);
  EXPECT_EQ(policies.size(), names(properties["synchronization"], "policy").size());
  const Json& kinds = properties["model"]["properties"]["layers"]["items"]["properties"];
  for (const auto& [kind, unused] : kinds.items()) {
    Json layer, model;
    layer[kind] = Json::object();
    model["layers"] = Json::array({layer});
    layers.insert(to_model(model).layers.at(0).kind.index());
  }
  EXPECT_EQ(layers.size(), std::variant_size_v<compute::LayerKind>);
}

TEST(TrainingSpec, KnowsEverySource) {
  const auto& words = source_words();
  ASSERT_EQ(words.size(), std::variant_size_v<SourceKind>);
  const Json& fields = training_schema()["properties"]["data"]["properties"]["train"]["properties"];
  for (size_t i = 0; i < words.size(); ++i) {
    EXPECT_TRUE(fields.contains(words[i].name)) << words[i].name;
    Json source;
    source[words[i].name] = Json::object();
    EXPECT_EQ(to_source(source, true).kind.index(), i) << words[i].name;
  }
}

TEST(TrainingSpec, ReadsLamb) {
  const auto defaults =
      std::get<compute::Lamb>(spec_with({{"optimizer.name", "lamb"}}).optimizer.kind);
  EXPECT_FLOAT_EQ(defaults.beta1, 0.9f);
  EXPECT_FLOAT_EQ(defaults.beta2, 0.999f);
  EXPECT_FLOAT_EQ(defaults.epsilon, 1e-7f);
  EXPECT_FLOAT_EQ(defaults.weight_decay, 0.01f);
  const std::string all = "{name: lamb, beta1: 0.8, beta2: 0.7, epsilon: 0.5, weightDecay: 0.25}";
  const auto given = std::get<compute::Lamb>(spec_with({{"optimizer", all}}).optimizer.kind);
  EXPECT_FLOAT_EQ(given.beta1, 0.8f);
  EXPECT_FLOAT_EQ(given.beta2, 0.7f);
  EXPECT_FLOAT_EQ(given.epsilon, 0.5f);
  EXPECT_FLOAT_EQ(given.weight_decay, 0.25f);
}

TEST(TrainingSpec, ReadsRmsProp) {
  const auto defaults =
      std::get<compute::RmsProp>(spec_with({{"optimizer.name", "rmsprop"}}).optimizer.kind);
  EXPECT_FLOAT_EQ(defaults.decay, 0.9f);
  EXPECT_FLOAT_EQ(defaults.momentum, 0.0f);
  EXPECT_FLOAT_EQ(defaults.epsilon, 1e-10f);
  const std::string all = "{name: rmsprop, decay: 0.8, momentum: 0.7, epsilon: 1.0}";
  const auto given = std::get<compute::RmsProp>(spec_with({{"optimizer", all}}).optimizer.kind);
  EXPECT_FLOAT_EQ(given.decay, 0.8f);
  EXPECT_FLOAT_EQ(given.momentum, 0.7f);
  EXPECT_FLOAT_EQ(given.epsilon, 1.0f);
}

TEST(TrainingSpec, ReadsWhatStandsBesideAnOptimizersFormula) {
  const compute::OptimizerSpec plain = spec_with({}).optimizer;
  EXPECT_FALSE(plain.l2 || plain.clip_value || plain.clip_norm || plain.average);
  const auto given = [](const std::string& more) {
    return spec_with({{"optimizer", "{name: rmsprop, " + more + "}"}}).optimizer;
  };
  EXPECT_TRUE(std::holds_alternative<compute::RmsProp>(given("clipValue: 3").kind));
  EXPECT_EQ(given("clipValue: 3").clip_value, 3.0f);
  EXPECT_EQ(given("clipNorm: 10").clip_norm, 10.0f);
  EXPECT_EQ(given("ema: {decay: 0.9999}").average, 0.9999);
  const auto l2 = given("l2: {factor: 0.00004}").l2;
  ASSERT_TRUE(l2);
  EXPECT_EQ(l2->factor, 0.00004f);
  EXPECT_EQ(l2->tensors, "");
  EXPECT_EQ(given("l2: {factor: 1, tensors: /kernel$}").l2->tensors, "/kernel$");
  EXPECT_FALSE(given("l2: null, clipValue: null, clipNorm: null, ema: null").average);
}

TEST(TrainingSpec, ReadsTheSettingsOfModels) {
  const std::string small =
      "{name: mobilenet-v1, depthMultiplier: 0.25, classes: 7, normalizationMomentum: 0.97}";
  const TrainingSpec spec = spec_with({{"model", small}});
  EXPECT_EQ(spec.model.label_count, 7);
  EXPECT_EQ(std::get<compute::Conv2d>(spec.model.layers[0].kind).filters, 8);
  EXPECT_FLOAT_EQ(std::get<compute::BatchNormalization>(spec.model.layers[1].kind).momentum, 0.97f);
}

TEST(TrainingSpec, ReadsTheClassificationLossOfADetector) {
  const auto given = [](const std::string& more) {
    const TrainingSpec spec =
        spec_with({{"model", "{name: ssd-mobilenet-v1, classes: 7" + more + "}"},
                   {"data.train", "{tfRecord: {files: f, labels: objects, imageSize: [64, 64]}}"},
                   {"data.test", "{coco: {annotations: a, folder: f, imageSize: [64, 64]}}"}});
    return std::get<compute::SsdLoss>(spec.model.loss).classification;
  };
  using detection::ClassificationLoss;
  EXPECT_EQ(given(""), ClassificationLoss{});
  EXPECT_EQ(given(", classificationLoss: sigmoid"), ClassificationLoss{});
  EXPECT_EQ(given(", classificationLoss: softmax"),
            (ClassificationLoss{ClassificationLoss::Kind::softmax, 1}));
  EXPECT_EQ(given(", classificationLoss: softmax, logitScale: 2.5"),
            (ClassificationLoss{ClassificationLoss::Kind::softmax, 2.5f}));
}

TEST(TrainingSpec, TellsSourcesOfObjectsHowManyClassesADetectorHas) {
  const TrainingSpec spec = spec_with(
      {{"model", "{name: ssd-mobilenet-v1, classes: 7}"},
       {"data.train", "{tfRecord: {files: f, labels: objects, imageSize: [64, 64], labelMap: m}}"},
       {"data.test", "{coco: {annotations: a, folder: f, imageSize: [64, 64]}}"}});
  EXPECT_EQ(std::get<RecordSource>(spec.data.train.kind).model_classes, 7);
  EXPECT_EQ(std::get<CocoSource>(spec.data.test->kind).model_classes, 7);
}

TEST(TrainingSpec, ReadsWhatIsEvaluatedWithinTheTraining) {
  const TrainingSpec none = spec_with({});
  EXPECT_FALSE(none.evaluate_every_epochs);
  EXPECT_FALSE(none.early_stopping);
  EXPECT_FALSE(none.keeps_best());
  const std::string validation = "{idx: {images: i, labels: l}}";
  const TrainingSpec spec = spec_with({
      {"data.validation", validation},
      {"evaluation", "{everyEpochs: 2}"},
      {"earlyStopping",
       "{metric: validationAccuracy, patience: 3, minDelta: 0.5, restoreBest: true}"},
      {"checkpoint", "{everyEpochs: 4, keep: 9, bestOnly: {}}"},
  });
  EXPECT_EQ(spec.evaluate_every_epochs, 2u);
  EXPECT_EQ(spec.early_stopping->metric, "validationAccuracy");
  EXPECT_EQ(spec.early_stopping->patience, 3u);
  EXPECT_EQ(spec.early_stopping->min_delta, 0.5);
  EXPECT_TRUE(spec.early_stopping->restore_best);
  EXPECT_EQ(spec.checkpoint.every_epochs, 4u);
  EXPECT_EQ(spec.checkpoint.best_only, "validationLoss");
  EXPECT_EQ(spec.checkpoint.keep, 1);
  const TrainingSpec least = spec_with(
      {{"data.validation", validation}, {"evaluation", "{}"}, {"earlyStopping", "{patience: 1}"}});
  EXPECT_EQ(least.evaluate_every_epochs, 1u);
  EXPECT_EQ(least.early_stopping->metric, "validationLoss");
  EXPECT_EQ(least.early_stopping->min_delta, 0);
  EXPECT_FALSE(least.early_stopping->restore_best);
}

TEST(TrainingSpec, ReadsWhichWeightsItBeginsWith) {
  EXPECT_FALSE(spec_with({{"initializeFrom", "old"}}).initialize_options.skip_mismatched);
  const InitializeOptions options =
      spec_with({{"initializeFrom", "old"},
                 {"initializeOptions",
                  "{rename: [{from: '^a(.*)', to: 'b\\1'}, {from: c, to: ''}], include: [v, w], "
                  "exclude: [z], skipMismatched: true, movingAverages: true}"}})
          .initialize_options;
  EXPECT_THAT(options.rename, ElementsAre(Rename{"^a(.*)", "b\\1"}, Rename{"c", ""}));
  EXPECT_THAT(options.include, ElementsAre("v", "w"));
  EXPECT_THAT(options.exclude, ElementsAre("z"));
  EXPECT_TRUE(options.skip_mismatched);
  EXPECT_TRUE(options.moving_averages);
}

TEST(TrainingSpec, FreezesLayersByTheirNames) {
  const auto frozen = [](const TrainingSpec& spec) {
    std::vector<std::string> names;
    for (const auto& layer : spec.model.layers)
      if (!layer.trainable) names.push_back(layer.name);
    return names;
  };
  EXPECT_THAT(frozen(spec_with({{"model", "{name: mnist-mlp}"}})), IsEmpty());
  EXPECT_THAT(frozen(spec_with({{"model", "{name: mnist-mlp, freeze: ['_[12]$']}"}})),
              ElementsAre("hidden_1", "hidden_2"));
  EXPECT_THAT(frozen(spec_with({{"model",
                                 "{layers: [{dense: {name: a, units: 3}}, {dense: {name: b, units: "
                                 "3, trainable: false}}, {dense: {name: c, units: 10}}], freeze: "
                                 "[^a]}"}})),
              ElementsAre("a", "b"));
  const auto detector = frozen(spec_with(
      {{"model", "{name: ssd-mobilenet-v1, freeze: ['^Conv2d_[0-9]+(_(point|depth)wise)?$']}"},
       {"data.train", "{coco: {annotations: a, folder: f, imageSize: [96, 96]}}"},
       {"data.test", "null"}}));
  EXPECT_EQ(detector.size(), 27u);
}

TEST(TrainingSpec, ReadsWhenToStop) {
  EXPECT_FALSE(spec_with({}).stop_when);
  const auto most = spec_with({{"stopWhen", "{metric: trainLoss, atMost: 0.05}"}}).stop_when;
  EXPECT_EQ(most->metric, "trainLoss");
  EXPECT_EQ(most->value, 0.05);
  EXPECT_TRUE(most->is_reached_by(0.05));
  EXPECT_FALSE(most->is_reached_by(0.0501));
  EXPECT_FALSE(most->is_reached_by(-std::numeric_limits<double>::infinity()));
  const auto least = spec_with({{"data.validation", "{idx: {images: i, labels: l}}"},
                                {"stopWhen", "{metric: validationAccuracy, atLeast: 0.9}"}})
                         .stop_when;
  EXPECT_TRUE(least->is_reached_by(0.95));
  EXPECT_FALSE(least->is_reached_by(0.85));
  EXPECT_FALSE(least->is_reached_by(std::nan("")));
}

TEST(TrainingSpec, ReadsALossAndItsSettings) {
  const auto loss_of = [](const std::string& more, int units = 1) {
    return spec_with({{"data.train", "{syntheticLinear: {samples: 9}}"},
                      {"model",
                       "{layers: [{dense: {units: " + std::to_string(units) + "}}]" + more + "}"}})
        .model.loss;
  };
  EXPECT_EQ(loss_of(", loss: meanSquaredError"), compute::LossKind(compute::MeanSquaredError{}));
  EXPECT_EQ(loss_of(", loss: huber"), compute::LossKind(compute::Huber{1.0f}));
  EXPECT_EQ(loss_of(", loss: huber, lossOptions: {}"), compute::LossKind(compute::Huber{1.0f}));
  EXPECT_EQ(loss_of(", loss: huber, lossOptions: {delta: 0.25}"),
            compute::LossKind(compute::Huber{0.25f}));
  EXPECT_EQ(loss_of(", loss: poisson"), compute::LossKind(compute::Poisson{}));
  EXPECT_EQ(loss_of(", loss: quantile"), compute::LossKind(compute::Quantile{{0.5f}}));
  EXPECT_EQ(loss_of(", loss: quantile, lossOptions: {quantile: 0.9}"),
            compute::LossKind(compute::Quantile{{0.9f}}));
  EXPECT_EQ(loss_of(", loss: quantile, lossOptions: {quantiles: [0.1, 0.9]}", 2),
            compute::LossKind(compute::Quantile{{0.1f, 0.9f}, 2}));
  EXPECT_EQ(loss_of(", loss: binaryCrossEntropy"),
            compute::LossKind(compute::BinaryCrossEntropy{1.0f, 0.5f}));
  EXPECT_EQ(loss_of(", loss: binaryCrossEntropy, lossOptions: {positiveWeight: 3, threshold: 0.2}"),
            compute::LossKind(compute::BinaryCrossEntropy{3.0f, 0.2f}));
  EXPECT_EQ(spec_with({}).model.loss, compute::LossKind(compute::SoftmaxCrossEntropy{}));
}

// tests/fixtures/keras/README.md says what the file means.
TEST(LearningRate, OfEachScheduleIsWhatKerasHas) {
  const auto file =
      std::filesystem::path(MUSTER_SOURCE_DIR) / "tests/fixtures/keras/schedules.json";
  const Json fixture = Json::parse(std::ifstream(file));
  ASSERT_EQ(fixture["cases"].size(), 6u);
  for (const Json& one : fixture["cases"]) {
    std::vector<std::pair<std::string, std::string>> sets;
    for (const auto& [field, value] : one["training"].items())
      sets.emplace_back(field, value.dump());
    const compute::Schedule schedule = spec_with(sets).schedule;
    for (size_t i = 0; i < one["steps"].size(); ++i) {
      const uint64_t step = one["steps"][i];
      const double expected = one["rates"][i];
      const bool warming = step <= schedule.warmup_steps && schedule.warmup_steps > 0;
      if (warming && step == 0) continue;
      EXPECT_NEAR(schedule.at(warming ? step - 1 : step), expected, 3e-7 * expected + 1e-9)
          << one["name"] << " at step " << step;
    }
  }
}

TEST(TrainingSpec, HasNoCheckpointsByTimeEveryZeroSeconds) {
  EXPECT_FALSE(spec_with({{"checkpoint.everySeconds", "0"}}).checkpoint.every_seconds);
  EXPECT_EQ(spec_with({{"checkpoint.everySeconds", "0.1"}}).checkpoint.every_seconds, 0.1);
}

TEST(TrainingSpec, NamesLayersPastNamesThatAreTaken) {
  const TrainingSpec spec = spec_with(
      {{"model",
        "{layers: [{dense: {units: 4}}, {dense: {units: 4, name: dense_1}}, "
        "{batchNormalization: {}}, {dense: {units: 3, name: dense_5}}, {dense: {units: 2}}]}"}});
  std::vector<std::string> names;
  for (const auto& layer : spec.model.layers) names.push_back(layer.name);
  EXPECT_THAT(names,
              ElementsAre("dense_2", "dense_1", "batch_normalization_1", "dense_5", "dense_6"));
}

TEST(TrainingSpec, RefusesEachMistakeOnceAndSaysWhere) {
  const std::string layers = "model.layers";
  const struct {
    std::vector<std::pair<std::string, std::string>> sets;
    const char* text;
  } cases[] = {
      {{{"steps", "5"}}, "expected exactly one of epochs, steps, found epochs, steps"},
      {{{"epochs", "null"}}, "exactly one of epochs, steps, found none of them"},
      {{{"epochs", "0"}}, "epochs: expected an integer from 1 to 1000000000"},
      {{{"model.name", "mnist-mpl"}}, "did you mean mnist-mlp?"},
      {{{"model", "{}"}}, "model: expected exactly one of name, layers, found none of them"},
      {{{"model.layers", "[{dense: {units: 3}}]"}},
       "exactly one of name, layers, found name, layers"},
      {{{"model.loss", "softmaxCrossEntropy"}}, "no loss beside a model's name"},
      {{{"model", "{layers: []}"}},
       "model.layers: expected a list of 1 to 1024 entries, found an empty list"},
      {{{"model", "{layers: [{dence: {units: 3}}]}"}}, "did you mean dense?"},
      {{{"model", "{layers: [{dense: {units: many}}]}"}},
       "model.layers[0].dense.units: expected an integer from 1 to 1048576, found \"many\" (a "
       "string)"},
      {{{"model", "{layers: [{dense: {}}]}"}},
       "model.layers[0].dense.units: expected an integer from 1 to 1048576, found nothing"},
      {{{"model", "{layers: [{dense: {units: 1}, dropout: {}}]}"}},
       "model.layers[0]: expected an object with exactly 1 field, found 2 (dense, dropout)"},
      {{{"model", "{layers: [{dense: {units: 3, activation: relo}}]}"}}, "did you mean relu?"},
      {{{"model", "{layers: [{dense: {units: 3, name: a}}, {dense: {units: 3, name: a}}]}"}},
       "a name that no other layer has, found 'a'"},
      {{{"model", "{layers: [{dense: {units: 3, name: input}}]}"}}, "found 'input'"},
      {{{"model",
         "{layers: [{dense: {units: 3, name: first}}, {dense: {units: 3, inputs: [fisrt]}}, {add: "
         "{inputs: [first, dense_2]}}]}"}},
       "did you mean first? Expected"},
      {{{"model", "{layers: [{dense: {units: 3}}, {dense: {units: 3, inputs: [input]}}]}"}},
       "'dense_1', which no layer names among its inputs"},
      {{{"model", "{layers: [{dense: {units: 3}}, {add: {inputs: [dense_1]}}]}"}},
       "a list of 2 to 64 entries, found a list of 1 entry"},
      {{{"model", "{layers: [{dense: {units: 3}}, {add: {}}]}"}}, "model.layers[1].add.inputs"},
      {{{"model", "{layers: [{dropout: {rate: 1}}]}"}}, "a number of at least 0 and below 1"},
      {{{"model", "{layers: [{dense: {units: 3, kernelInitializer: {name: normal}}}]}"}},
       "scale: expected a number, for the initializer is normal, found nothing"},
      {{{"model", "{layers: [{dense: {units: 3, kernelInitializer: {scale: 2}}}]}"}},
       "no scale, for the initializer is glorotUniform"},
      {{{"model", "{layers: [{dense: {units: 3, biasInitializer: {name: uniform, scale: -1}}}]}"}},
       "a number of at least 0"},
      {{{"model.name", "linear-regression"}},
       "numbers as targets, for the model's loss is meanSquaredError"},
      {{{"data.train", "{syntheticLinear: {samples: 5}}"}},
       "classes, for the model's loss is softmaxCrossEntropy"},
      {{{"data.train.syntheticClasses", "{samples: 1, shape: [784], classes: 10}"}},
       "data.train: expected exactly one of idx, syntheticLinear, syntheticClasses, imageFolder, "
       "imageCsv, tfRecord, coco, table, found idx, syntheticClasses"},
      {{{"data.train", "{}"}}, "found none of them"},
      {{{"data.train",
         "{syntheticClasses: {samples: 1, shape: [65536, 65536, 65536, 65536], classes: 2}}"}},
       "at most 16777216 features a sample"},
      {{{"data.validation", "{idx: {images: a}}"}},
       "data.validation.idx: expected either images and labels, or files, found images"},
      {{{"data.validation", "{tfRecord: {imageSize: [9, 9]}}"}},
       "data.validation.tfRecord: expected either files or fileList, found neither"},
      {{{"data.validation", "{tfRecord: {files: a, fileList: [b], imageSize: [9, 9]}}"}},
       "data.validation.tfRecord: expected either files or fileList, found both"},
      {{{"data.train", "{table: {files: a.csv, fileList: [b.csv], target: {column: z}}}"}},
       "data.train.table: expected either files or fileList, found both"},
      {{{"data.train", "{table: {files: a.csv}}"}}, "data.train.table.target: expected"},
      {{{"data.train", "{table: {files: a.csv, target: {column: z, kind: number}}}"}},
       "data.train: expected classes, for the model's loss is softmaxCrossEntropy, found table, "
       "which has numbers"},
      {{{"data.train", "{table: {files: a.csv, target: {column: z}, separator: ab}}"}},
       "data.train.table.separator: expected a string of exactly 1 character"},
      {{{"data.train", "{table: {files: a.csv, target: {column: z}, mixed: true}, shard: file}"}},
       "data.train.shard: expected record, for only idx, tfRecord and a table in the order of its "
       "files"},
      {{{"data.train", "{table: {files: a.csv, target: {column: y}}}"}},
       "data.train.table.target.column: expected a string of 1 to 4096 characters, found true"},
      {{{"data.validation", "{table: {files: a.csv}}"}},
       "data.validation.table: expected a table as data.train too, which decides the features"},
      {{{"data.train", "{table: {files: a.csv, target: {column: z}}}"},
        {"data.validation", "{table: {files: a.csv, target: {column: z}}}"}},
       "data.validation.table.target: expected"},
      {{{"data.train.split", "{fraction: 1}"}}, "data.train.split.fraction"},
      {{{"data.trian", "{}"}}, "did you mean train?"},
      {{{"batchSize", "many"}},
       "training.yaml (--set): batchSize: expected an integer from 1 to 1048576, found \"many\" (a "
       "string)"},
      {{{"batchsize", "3"}}, "did you mean batchSize?"},
      {{{"optimizer.name", "adm"}}, "did you mean adam?"},
      {{{"optimizer.momentum", "0.5"}},
       "optimizer.momentum: expected no such field for adam (it belongs to sgd, momentum, "
       "rmsprop)"},
      {{{"optimizer", "{name: sgd, beta1: 0.5}"}}, "no such field for sgd"},
      {{{"optimizer", "{name: adam, weightDecay: 0.5}"}}, "it belongs to adamw"},
      {{{"optimizer", "{name: lamb, nesterov: true}"}}, "no such field for lamb"},
      {{{"optimizer", "{name: lamb, beta2: 1}"}}, "optimizer.beta2: expected"},
      {{{"optimizer", "{name: sgd, nesterov: true}"}}, "a momentum above 0 beside nesterov"},
      {{{"optimizer.learningRate", "0"}}, "a number above 0"},
      {{{"optimizer", "{name: lamb, clipNorm: 1}"}},
       "optimizer.clipNorm: expected no such field for lamb (it belongs to sgd, momentum, adam, "
       "adamw, rmsprop)"},
      {{{"optimizer", "{clipNorm: 1, clipValue: 1}"}},
       "optimizer: expected at most one of clipValue, clipNorm, found clipValue, clipNorm"},
      {{{"optimizer.clipNorm", "0"}}, "optimizer.clipNorm: expected a number above 0"},
      {{{"optimizer.ema.decay", "1"}}, "optimizer.ema.decay: expected a number of at least 0"},
      {{{"optimizer.ema", "{}"}}, "optimizer.ema.decay"},
      {{{"optimizer.l2", "{}"}}, "optimizer.l2.factor"},
      {{{"optimizer.l2", "{factor: 1, tensors: '('}"}},
       "optimizer.l2.tensors: expected a regular expression in RE2's syntax, found \"(\""},
      {{{"optimizer.l2", "{factor: 1, tensors: 'kernel(?=s)'}"}},  // ECMAScript has this
       "optimizer.l2.tensors: expected a regular expression in RE2's syntax, found "
       "\"kernel(?=s)\""},
      {{{"optimizer.l2", "{factor: 1, tensors: '(a{900}){900}'}"}},
       "optimizer.l2.tensors: expected a regular expression in RE2's syntax"},
      {{{"learningRateSchedule",
         "{cosine: {decaySteps: 1}, exponential: {decaySteps: 1, rate: 0.5}}"}},
       "at most one of piecewise, exponential, cosine"},
      {{{"learningRateSchedule.piecewise", "{boundaries: [1, 2], values: [1, 2]}"}},
       "3 values, one more than boundaries, found 2"},
      {{{"learningRateSchedule.piecewise", "{boundaries: [2, 2], values: [1, 2, 3]}"}},
       "boundaries[1]: expected a step after 2"},
      {{{"data.validation", "{idx: {images: i, labels: l}}"},
        {"stopWhen", "{metric: validationAccuracy, atLeast: 95}"}},
       "stopWhen.atLeast: expected at most 1, which validationAccuracy can reach, found 95"},
      {{{"synchronization.maxStaleness", "3"}}, "no such field for the policy sync"},
      {{{"synchronization.wire", "float16"}},
       "synchronization.wire: did you mean bfloat16? Expected one of float32, bfloat16"},
      {{{"synchronization.policy", "asnyc"}}, "did you mean async?"},
      {{{"synchronization", "{policy: async, backupWorkers: 1}"}},
       "synchronization.backupWorkers: expected 0 for the policy async, found 1"},
      {{{"device", "gpu"}}, "one of auto, cpu, cuda"},
      {{{"optimizer.beta1", "0.99999999"}},
       "optimizer.beta1: expected a number of at least 0 and below 1, found 0.99999999 (a number), "
       "which a float32 rounds to 1.0"},
      {{{"optimizer.beta2", "0.999999999"}}, "which a float32 rounds to 1.0"},
      {{{"optimizer.epsilon", "1e-50"}}, "which a float32 rounds to 0.0"},
      {{{"optimizer", "{name: sgd, momentum: 0.99999999}"}}, "which a float32 rounds to 1.0"},
      {{{"model", "{layers: [{dense: {units: 3}}, {dropout: {rate: 0.99999999}}]}"}},
       "model.layers[1].dropout.rate: expected a number"},
      {{{"model.loss", "softmax"},
        {"model.name", "null"},
        {"model.layers", "[{dense: {units: 3}}]"}},
       "did you mean softmaxCrossEntropy?"},
      {{{"epochs", "100000000000000000000"}},
       "epochs: expected an integer from 1 to 1000000000, "
       "found 1e+20 (a number)"},
      {{{"checkpoint.everySeconds", "-1"}}, "from 0 to"},
      {{{"checkpoint.keep", "0"}}, "checkpoint.keep"},
      {{{"checkpoint.megabytesPerSecond", "0"}}, "from 1 to"},
  };
  for (const auto& item : cases) {
    const auto problems = problems_of(item.sets);
    ASSERT_FALSE(problems.empty()) << item.text;
    EXPECT_EQ(problems.size(), 1u) << testing::PrintToString(problems);
    EXPECT_THAT(problems, ::testing::Contains(HasSubstr(item.text)));
  }
}

TEST(TrainingSpec, CheckingPassesOverAnythingMalformed) {
  for (const char* text :
       {"", "[]", "1", "{model: [], data: 3, optimizer: {name: 3}}", "{model: {layers: {a: 1}}}",
        "{model: {layers: [1, [], {}, {dense: 3}]}}",
        "{data: {train: {syntheticClasses: {shape: [x, -5, 1e30]}}}}",
        "{learningRateSchedule: {piecewise: {boundaries: [x, 1], values: 3}}}"}) {
    Document document = Document::parse(text, "x");
    EXPECT_NO_THROW(validate_training(document)) << text;
  }
}

TEST(TrainingSpec, LoadingNamesFileLineAndEveryProblem) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / "muster-training-spec.yaml";
  write_file_atomically(path, "model: {name: mnist-mlp}\nbatchSize: x\ndata:\n  train: {}\n");
  try {
    load_training(path);
    FAIL();
  } catch (const Invalid& error) {
    EXPECT_EQ(error.exit_code(), 78);
    EXPECT_THAT(error.what(), HasSubstr(path.string() + ":2: batchSize: "));
    EXPECT_THAT(error.what(), HasSubstr(path.string() + ":4: data.train: "));
    EXPECT_THAT(error.what(), HasSubstr("exactly one of epochs, steps"));
  }
  write_file_atomically(path, "model: [");
  EXPECT_THROW(load_training(path), Invalid);
  std::filesystem::remove(path);
  try {
    load_training(path);
    FAIL();
  } catch (const Invalid& error) {
    EXPECT_EQ(error.exit_code(), 78);
  }
}

}  // namespace
}  // namespace muster::spec
