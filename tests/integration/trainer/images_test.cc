// Trainings on image files that the tests write.

#include <gmock/gmock.h>

#include "common/exit_code.h"
#include "common/system/file.h"
#include "tests/integration/trainer/job.h"
#include "tests/unit/trainer/data/images/pictures.h"
#include "trainer/data/images/class_folders.h"
#include "trainer/records/example.h"
#include "trainer/records/record_writer.h"

namespace muster::integration {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

// Reddish and bluish pictures of different sizes, as JPEG and PNG.
void write_pictures(const fs::path& folder, int of_each_class) {
  for (int i = 0; i < of_each_class; ++i) {
    const auto height = static_cast<size_t>(40 + i % 7), width = static_cast<size_t>(50 - i % 5);
    const auto red = data::picture(i, height, width, {150, 40, 60});
    const auto blue = data::picture(i + 3, height, width, {60, 40, 150});
    data::put(folder / "red" / (std::to_string(i) + ".jpg"), images::encode_jpeg(red.view(), 85));
    data::put(folder / "blue" / (std::to_string(i) + ".png"), images::encode_png(blue.view()));
  }
}

// The list and the records with a label map hold the same images in the same order.
void write_list_and_records(const fs::path& folder) {
  const data::ImageList list = data::list_class_folders(folder);
  std::string lines = "path,label\n";
  records::RecordWriter records(folder / "images.tfrecord");
  for (const data::ImageFile& file : list.files) {
    lines += file.path.lexically_relative(folder).string() + "," +
             list.classes[static_cast<size_t>(file.label)] + "\n";
    records.write(records::write_example(
        {.image = read_file(file.path), .label = file.label + 1, .text = ""}));
  }
  records.finish();
  data::put(folder / "list.csv", lines);
  data::put(folder / "labels.pbtxt", "item { id: 1 name: 'blue' } item { id: 2 name: 'red' }\n");
}

constexpr const char* kSize = "imageSize: [16, 16], scale: 0.00784313725, offset: -1";

std::string training_of(const std::string& source) {
  return R"(
model:
  layers:
    - conv2d: {filters: 6, size: [3], strides: [2], activation: relu}
    - conv2d: {filters: 8, size: [3], activation: relu}
    - globalAveragePool: {}
    - dense: {units: 2}
data:
  train:
    )" + source +
         R"(
    split: {fraction: 0.8}
    augment:
      - randomCrop: {area: [0.4, 1]}
      - flip: {}
      - colour: {brightness: 0.1, hue: 0.02}
  validation:
    )" + source +
         R"(
    split: {fraction: 0.8, part: rest}
batchSize: 8
epochs: 8
optimizer: {learningRate: 0.01}
evaluation: {everyEpochs: 4}
)";
}

struct Trained {
  std::optional<int> code;
  std::string log;
  Json result, evaluation;
};

Trained train(const fs::path& folder, const std::string& text, const std::string& threads = "2") {
  fs::create_directories(folder);
  write_file_atomically(folder / "training.yaml", text);
  Process process({MUSTER_TRAINER, "--standalone", (folder / "training.yaml").string(), "--storage",
                   (folder / "job").string()},
                  {{"MUSTER_THREADS", threads}}, folder / "log", {});
  Trained trained;
  trained.code = process.wait();
  trained.log = read_file(folder / "log");
  if (trained.code != kSuccess) return trained;
  trained.result = Json::parse(read_file(folder / "job/result.json"));
  const fs::path evaluation =
      folder / "job/evaluations" / (trained.result["step"].dump() + ".json");
  if (fs::exists(evaluation)) trained.evaluation = Json::parse(read_file(evaluation));
  return trained;
}

// An evaluation without what it says of each class, since not every source names the classes.
Json without_names(Json evaluation) {
  for (const char* field : {"precisionByClass", "recallByClass", "f1ByClass"})
    evaluation.erase(field);
  return evaluation;
}

TEST(ImagesTest, FoldersListsAndRecordsTrainTheSameConvolutionalNetwork) {
  const fs::path folder = scratch() / "images-same", pictures = folder / "pictures";
  write_pictures(pictures, 40);
  write_list_and_records(pictures);
  const std::string path = pictures.string();
  const Trained folders =
      train(folder / "folders", training_of("imageFolder: {path: " + path + ", " + kSize + "}"));
  ASSERT_EQ(folders.code, kSuccess) << folders.log;
  EXPECT_EQ(folders.result["step"], 64);
  EXPECT_GT(folders.result["trainAccuracy"], 0.95) << folders.result.dump(2);
  EXPECT_GT(folders.evaluation["validation"]["accuracy"], 0.95) << folders.evaluation.dump(2);
  const std::string sources[] = {
      "imageCsv: {file: " + path + "/list.csv, classes: [blue, red], " + kSize + "}",
      "tfRecord: {files: " + path + "/*.tfrecord, labelMap: " + path + "/labels.pbtxt, " + kSize +
          "}",
      "cache: false\n    tfRecord: {files: " + path + "/*.tfrecord, " + kSize + "}",
      "cache: false\n    tfRecord: {files: " + path + "/*.tfrecord, labelMap: " + path +
          "/labels.pbtxt, " + kSize + "}"};
  for (const std::string& source : sources) {
    fs::remove_all(folder / "other");
    const Trained other = train(folder / "other", training_of(source));
    ASSERT_EQ(other.code, kSuccess) << other.log;
    for (const char* field : {"weightsDigest", "trainLoss", "trainAccuracy"})
      EXPECT_EQ(other.result[field], folders.result[field]) << source << ": " << field;
    EXPECT_EQ(without_names(other.evaluation["validation"]),
              without_names(folders.evaluation["validation"]))
        << source;
  }
}

TEST(ImagesTest, TrainsInBfloat16WhatIsNormalized) {
  const fs::path folder = scratch() / "images-bfloat16", pictures = folder / "pictures";
  write_pictures(pictures, 40);
  const std::string plain =
      training_of("imageFolder: {path: " + pictures.string() + ", " + kSize + "}");
  const Trained refused = train(folder / "refused", plain + "precision: bfloat16\n");
  EXPECT_EQ(refused.code, kBadConfig);
  EXPECT_THAT(refused.log, HasSubstr("precision: expected float32 for a model without"));
  std::string text = plain;
  const std::string layer =
      "    - conv2d: {filters: 6, size: [3], strides: [2], activation: relu}\n";
  text.replace(text.find(layer), layer.size(), R"(
    - conv2d: {filters: 6, size: [3], strides: [2], useBias: false}
    - batchNormalization: {momentum: 0.9}
    - activation: {function: relu}
)");
  const Trained exact = train(folder / "float32", text);
  const Trained rounded = train(folder / "bfloat16", text + "precision: bfloat16\n");
  const Trained again = train(folder / "again", text + "precision: bfloat16\n");
  for (const Trained* trained : {&exact, &rounded, &again}) {
    ASSERT_EQ(trained->code, kSuccess) << trained->log;
    EXPECT_GT(trained->result["trainAccuracy"], 0.9) << trained->result.dump(2);
    EXPECT_GT(trained->evaluation["validation"]["accuracy"], 0.9) << trained->evaluation.dump(2);
  }
  EXPECT_NE(exact.result["weightsDigest"], rounded.result["weightsDigest"]);
  EXPECT_EQ(again.result["weightsDigest"], rounded.result["weightsDigest"]);
}

TEST(ImagesTest, AGroupOfReplicasTrainsOnRecordsOfItsOwnFiles) {
  const fs::path pictures = scratch() / "images-group-pictures";
  write_pictures(pictures, 20);
  const data::ImageList list = data::list_class_folders(pictures);
  for (size_t shard = 0; shard < 4; ++shard) {
    records::RecordWriter records(pictures / ("train-" + std::to_string(shard) + "-of-4"));
    for (size_t i = shard; i < list.files.size(); i += 4)
      records.write(records::write_example(
          {.image = read_file(list.files[i].path), .label = list.files[i].label + 1, .text = ""}));
    records.finish();
  }
  std::string text = training_of("tfRecord: {files: " + pictures.string() + "/train-*-of-*, " +
                                 kSize + "}\n    shard: file");
  text.erase(text.find("  validation:"), text.find("batchSize") - text.find("  validation:"));
  text.erase(text.find("evaluation:"));
  text.replace(text.find("    split: {fraction: 0.8}\n"), 27, "");
  Job job("images-group", text, 1, 1);
  job.start_all();
  job.expect_success();
  EXPECT_EQ(job.result()["step"], 24);
  EXPECT_GT(job.result()["trainAccuracy"], 0.9) << job.result().dump(2);
}

// The parameter server and the evaluator build the same model, each from the data.
TEST(ImagesTest, EveryReplicaOfAGroupTakesTheClassesOfAModelFromTheData) {
  const fs::path pictures = scratch() / "images-open-pictures";
  write_pictures(pictures, 8);
  const std::string source =
      "{imageFolder: {path: " + pictures.string() + ", imageSize: [32, 32]}}\n";
  Job job("images-open",
          "model: {name: mobilenet-v1, depthMultiplier: 0.25}\nbatchSize: 4\nepochs: 1\n"
          "data:\n  train: " +
              source + "  validation: " + source,
          1, 1, true);
  job.start_all();
  job.expect_success();
  EXPECT_EQ(job.result()["step"], 2);
  EXPECT_TRUE(job.evaluation()["validation"]["accuracy"].is_number());
  const fs::path manifest =
      job.folder() / job.result()["checkpoint"].get<std::string>() / "manifest.json";
  EXPECT_EQ(Json::parse(read_file(manifest))["training"]["model"]["classes"], 2);
}

// The second record has a label beyond the model's classes.
TEST(ImagesTest, AnObjectThatTheModelHasNoClassForIsNamedWithItsRecord) {
  const fs::path folder = scratch() / "images-unknown-object";
  fs::create_directories(folder);
  records::RecordWriter records(folder / "objects.tfrecord");
  for (int i = 0; i < 8; ++i) {
    records::DetectionExample example;
    example.image = data::png(i);
    example.boxes = {{.ymin = 0.1f, .xmin = 0.1f, .ymax = 0.6f, .xmax = 0.6f, .label = 1 + i % 2}};
    if (i == 1) example.boxes[0].label = 3;
    records.write(records::write_example(example, nullptr));
  }
  records.finish();
  const auto text = [&](const char* most) {
    return "model: {name: ssd-mobilenet-v1, depthMultiplier: 0.25, classes: 2}\nbatchSize: 4\n"
           "epochs: 2\ndata:\n  train: {tfRecord: {files: " +
           (folder / "objects.tfrecord").string() +
           ", labels: objects, imageSize: [64, 64], maxCorrupt: " + most + "}}\n";
  };
  const Trained some = train(folder / "some", text("0.2"));
  ASSERT_EQ(some.code, kSuccess) << some.log;
  const std::string why =
      "image/object/class/label: expected a label from 1 to 2, the model's classes, found 3";
  const size_t first = some.log.find(why);
  ASSERT_NE(first, std::string::npos) << some.log;
  EXPECT_EQ(some.log.find(why, first + 1), std::string::npos) << "it is said once";
  EXPECT_THAT(some.log, HasSubstr("objects.tfrecord: record 1 at byte "));
  const Trained none = train(folder / "none", text("0"));
  EXPECT_EQ(none.code, kBadInput);
  EXPECT_THAT(none.log, AllOf(HasSubstr(why), HasSubstr("as maxCorrupt says, found 1")));
}

TEST(ImagesTest, DamagedImagesAreNamedAndReplacedUpToTheLimit) {
  const fs::path folder = scratch() / "images-damaged", pictures = folder / "pictures";
  write_pictures(pictures, 40);
  data::put(pictures / "red/7.jpg", read_file(pictures / "red/7.jpg").substr(0, 300));
  const auto source = [&](const char* most) {
    return training_of("imageFolder: {path: " + pictures.string() + ", " + kSize +
                       ", maxCorrupt: " + most + "}");
  };
  const Trained some = train(folder / "some", source("0.1"));
  ASSERT_EQ(some.code, kSuccess) << some.log;
  EXPECT_THAT(some.log, AllOf(HasSubstr("a damaged sample is replaced by the next one"),
                              HasSubstr("red/7.jpg")));
  const Trained none = train(folder / "none", source("0"));
  EXPECT_EQ(none.code, kBadInput);
  EXPECT_THAT(none.log, AllOf(HasSubstr("red/7.jpg"), HasSubstr("as maxCorrupt says, found 1")));
  EXPECT_FALSE(fs::exists(folder / "none/job/result.json"));
}

}  // namespace
}  // namespace muster::integration
