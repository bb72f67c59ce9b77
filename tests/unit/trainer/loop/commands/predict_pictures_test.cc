#include "trainer/loop/commands/predict_pictures.h"

#include <gmock/gmock.h>

#include <fstream>
#include <set>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/system/file.h"
#include "tests/unit/trainer/data/idx_files.h"
#include "tests/unit/trainer/data/images/pictures.h"
#include "tests/unit/trainer/images/fixture.h"
#include "tests/unit/trainer/loop/support.h"
#include "trainer/checkpoint/store/checkpoint.h"
#include "trainer/data/images/class_folders.h"
#include "trainer/data/sources/digits.h"
#include "trainer/images/decode.h"
#include "trainer/loop/commands/on_samples.h"
#include "trainer/loop/roles/roles.h"

namespace muster::loop {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Invalid& error) {
    return error.what();
  }
  return "no error";
}

// Trains as a process by itself, storing below `folder`/job.
void train(const fs::path& folder, const std::string& training) {
  write_file_atomically(folder / "training.yaml", training);
  ASSERT_EQ(run_alone(alone(folder, folder / "training.yaml"), {}, nullptr), kSuccess);
}

Json predicted(const fs::path& where, const std::vector<fs::path>& pictures) {
  PictureOptions options;
  options.pictures = pictures;
  options.least_score = 0;
  return predict_pictures(where, options)["predictions"];
}

fs::path checkpoint_in(const fs::path& job) {
  return job / "checkpoints" / checkpoint::Store(job / "checkpoints", 1).list().front().text();
}

// Makes a checkpoint one of a version of Muster that did not keep the format of samples.
void make_older(const fs::path& checkpoint) {
  checkpoint::Manifest manifest = checkpoint::Store::read(checkpoint).manifest;
  ASSERT_TRUE(manifest.samples.is_object() && !manifest.samples.empty());
  manifest.samples = nullptr;
  write_file_atomically(checkpoint / "manifest.json", to_text(manifest));
}

// A classification of reddish and bluish pictures of several sizes, in folders.
class PredictPicturesTest : public testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 20; ++i) {
      const auto height = static_cast<size_t>(40 + i % 7), width = static_cast<size_t>(90 - i % 5);
      const auto red = data::picture(i, height, width, {150, 40, 60});
      const auto blue = data::picture(i + 3, height, width, {60, 40, 150});
      const std::string name = std::to_string(i);
      data::put(data_ / "red" / (name + ".jpg"), images::encode_jpeg(red.view(), 85));
      data::put(data_ / "blue" / (name + ".png"), images::encode_png(blue.view()));
    }
    const std::string source = "{imageFolder: {path: " + data_.string() +
                               ", imageSize: [12, 16], scale: 0.00784313725, offset: -1}}";
    train(folder_,
          "model: {layers: [{conv2d: {filters: 4}}, {globalAveragePool: {}}, {dense: "
          "{units: 2}}]}\ndata:\n  train: " +
              source + "\n  validation: " + source + "\nepochs: 2\nthreads: 1\n");
  }

  const fs::path folder_ = fresh_folder("predict-pictures"), data_ = folder_ / "data",
                 job_ = folder_ / "job";
};

TEST_F(PredictPicturesTest, SaysOfAPictureWhatItSaysOfTheSameSample) {
  const auto files = data::list_class_folders(data_).files;
  std::vector<fs::path> pictures;
  std::vector<int64_t> indices;
  for (const data::ImageFile& file : files) {
    indices.push_back(static_cast<int64_t>(pictures.size()));
    pictures.push_back(file.path);
  }
  const Json samples = predict_checkpoint(job_, "validation", indices)["predictions"];
  const Json of_pictures = predicted(job_, pictures);
  ASSERT_EQ(of_pictures.size(), 40u);
  std::set<std::string> classes;
  for (size_t i = 0; i < samples.size(); ++i) {
    const Json& one = of_pictures[i];
    ASSERT_EQ(one["classes"].size(), 2u);
    EXPECT_EQ(one["class"], samples[i]["predicted"] == 0 ? "blue" : "red");
    EXPECT_EQ(one["probability"], samples[i]["probability"]);
    EXPECT_GE(one["classes"][0]["probability"], one["classes"][1]["probability"]);
    for (const Json& of_class : one["classes"])
      EXPECT_EQ(of_class["probability"],
                samples[i]["probabilities"][of_class["label"].get<size_t>()]);
    classes.insert(one["class"].get<std::string>());
  }
  EXPECT_EQ(classes.size(), 2u);
}

TEST_F(PredictPicturesTest, NeedsNoDataOfTheTraining) {
  data::put(folder_ / "pictures/1.jpg", read_file(data_ / "red/1.jpg"));
  data::put(folder_ / "pictures/2.png", read_file(data_ / "blue/2.png"));
  data::put(folder_ / "pictures/notes.txt", "no picture");
  fs::remove_all(data_);
  const Json of_job = predicted(job_, {folder_ / "pictures"});
  ASSERT_EQ(of_job.size(), 2u);
  EXPECT_EQ(of_job[0]["picture"], (folder_ / "pictures/1.jpg").string());
  EXPECT_THAT(of_job[0]["class"], testing::AnyOf("red", "blue"));
  for (const fs::path& where :
       {checkpoint_in(job_), job_ / "model", job_ / "model/model.safetensors"})
    EXPECT_EQ(predicted(where, {folder_ / "pictures"}), of_job);
  make_older(checkpoint_in(job_));
  const Json of_older = predicted(job_, {folder_ / "pictures"});
  EXPECT_EQ(of_older[0]["probability"], of_job[0]["probability"]);
  EXPECT_THAT(of_older[0]["class"], testing::AnyOf("0", "1"));  // their names are lost
}

TEST_F(PredictPicturesTest, NamesDamagedAndMissingPicturesAndGoesOn) {
  const fs::path damaged = folder_ / "damaged.jpg";
  data::put(damaged, read_file(data_ / "red/1.jpg").substr(0, 300));
  data::put(folder_ / "text.png", "no picture");
  const Json found =
      predicted(job_, {damaged, folder_ / "text.png", folder_ / "none.jpg", data_ / "red/1.jpg"});
  ASSERT_EQ(found.size(), 4u);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_THAT(found[i]["error"].get<std::string>(),
                HasSubstr(fs::path(found[i]["picture"].get<std::string>()).filename().string()));
  EXPECT_FALSE(found[3].contains("error"));
}

TEST_F(PredictPicturesTest, TakesPicturesOfAllKinds) {
  const Json found = predicted(job_, {MUSTER_SOURCE_DIR "/tests/fixtures/images"});
  EXPECT_GT(found.size(), 20u);
  for (const Json& one : found) EXPECT_FALSE(one.contains("error")) << one;
}

TEST_F(PredictPicturesTest, DrawsIntoCopiesThatReplaceNoPicture) {
  const fs::path here = folder_ / "here";
  data::put(here / "a.png", read_file(data_ / "blue/1.png"));
  data::put(here / "a.jpg", images::fixture("orientation-6.jpg"));
  const std::string before = read_file(here / "a.png");
  PictureOptions options;
  options.pictures = {"."};
  options.from = here;
  options.drawn = ".";
  const Json found = predict_pictures(job_, options)["predictions"];
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(read_file(here / "a.png"), before);
  EXPECT_EQ(found[0]["drawn"], "./a-2.png");
  EXPECT_EQ(found[1]["drawn"], "./a-3.png");
  const auto size = images::read_size(images::bytes_of(read_file(here / "a-2.png")), "copy");
  const auto turned =
      images::read_size(images::bytes_of(images::fixture("orientation-6.jpg")), "original");
  EXPECT_EQ(size.height, turned.height);
  EXPECT_EQ(size.width, turned.width);
  EXPECT_NE(read_file(here / "a-3.png"), before);
}

TEST_F(PredictPicturesTest, DrawsIntoAFolderWithFilesThatStay) {
  const fs::path here = folder_ / "here";
  data::put(here / "a.jpg", read_file(data_ / "red/1.jpg"));
  data::put(here / "a.png", "a file of the user");
  PictureOptions options;
  options.pictures = {here / "a.jpg"};
  options.drawn = here;
  const auto drawn = [&] { return predict_pictures(job_, options)["predictions"][0]["drawn"]; };
  EXPECT_EQ(drawn(), (here / "a-2.png").string());
  const std::string copy = read_file(here / "a-2.png");
  EXPECT_EQ(drawn(), (here / "a-3.png").string());
  EXPECT_EQ(read_file(here / "a-3.png"), copy);
  EXPECT_EQ(read_file(here / "a.png"), "a file of the user");
}

TEST_F(PredictPicturesTest, TellsOfAsManyClassesAsAreWanted) {
  PictureOptions options;
  options.pictures = {data_ / "red/1.jpg"};
  options.most_classes = 1;
  EXPECT_EQ(predict_pictures(job_, options)["predictions"][0]["classes"].size(), 1u);
}

TEST_F(PredictPicturesTest, GoesOnAfterAFolderWithoutPictures) {
  fs::create_directories(folder_ / "empty");
  const Json found = predicted(job_, {folder_ / "empty", data_ / "red/1.jpg"});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(
      found[0]["error"].get<std::string>(),
      HasSubstr("empty: expected .jpg, .jpeg, .jpe, .jfif or .png files in it, found none"));
  EXPECT_FALSE(found[1].contains("error")) << found[1];
}

TEST(PredictPictures, TakesGreyPicturesForAModelOfIdxImages) {
  const fs::path folder = fresh_folder("predict-idx");
  // 40 images of 2 x 3 pixels, whose pixels are 0, 1, 2, ... through the file.
  const std::string bytes = data::images_2x3(40);
  data::put(folder / "images", bytes);
  std::vector<uint8_t> labels(40);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = i % 3;
  data::put(folder / "labels", data::labels_of(labels));
  const std::string source = "{idx: {images: " + (folder / "images").string() +
                             ", labels: " + (folder / "labels").string() + "}}";
  train(folder, "model: {layers: [{dense: {units: 3}}]}\ndata:\n  train: " + source +
                    "\n  validation: " + source + "\nepochs: 3\nthreads: 1\n");
  images::Image image;
  image.resize(2, 3);
  constexpr size_t kSample = 5, kHeader = 16;
  for (size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<uint8_t>(bytes[kHeader + 6 * kSample + i / 3]);
  data::put(folder / "five.png", images::encode_png(image.view()));
  const Json sample = predict_checkpoint(folder / "job", "validation", {kSample})["predictions"][0];
  fs::remove(folder / "images");
  const Json picture = predicted(folder / "job", {folder / "five.png"})[0];
  EXPECT_EQ(picture["probability"], sample["probability"]);
  EXPECT_EQ(picture["class"], std::to_string(sample["predicted"].get<int>()));
  make_older(checkpoint_in(folder / "job"));
  EXPECT_THAT(message_of([&] { predicted(folder / "job", {folder / "five.png"}); }),
              HasSubstr("expected the files of data.train.idx"));
}

TEST(PredictPictures, RefusesAModelThatWasNotTrainedOnImages) {
  const fs::path folder = fresh_folder("predict-floats");
  ASSERT_EQ(run_alone(alone(folder, write_training(folder, "steps: 1\n")), {}, nullptr), kSuccess);
  EXPECT_THAT(message_of([&] { predicted(folder / "job", {"x.jpg"}); }),
              AllOf(HasSubstr("expected a model that was trained on images"),
                    HasSubstr("samples are [8] of floats")));
}

// A detector of digits, trained for a step: it finds nothing for sure, but something everywhere.
class PredictObjectsTest : public testing::Test {
 protected:
  void SetUp() override {
    data::DigitsOptions digits;
    digits.images = MUSTER_SOURCE_DIR "/examples/data/mnist/t10k-images-idx3-ubyte.gz";
    digits.labels = MUSTER_SOURCE_DIR "/examples/data/mnist/t10k-labels-idx1-ubyte.gz";
    digits.output = data_;
    digits.train = 8;
    digits.validation = 6;
    digits.shards = 1;
    data::make_digits(digits);
    const auto source = [&](const std::string& part) {
      return "{coco: {annotations: " + (data_ / "coco" / (part + ".json")).string() +
             ", folder: " + (data_ / "coco" / part).string() +
             ", imageSize: [64, 64], scale: 0.00784313725, offset: -1}}";
    };
    train(folder_,
          "model: {name: ssd-mobilenet-v1, classes: 10, depthMultiplier: 0.1}\nbatchSize: 4\n"
          "data:\n  train: " +
              source("train") + "\n  validation: " + source("validation") +
              "\nsteps: 1\nthreads: 1\nsummary: {pictures: 3}\n");
  }

  // Expects curves and pictures of the evaluation, one of which is `png`, in the events of a
  // replica.
  void expect_shown(const std::string& replica, const std::string& png) {
    std::string events;
    for (const auto& entry : fs::directory_iterator(job_ / "events" / replica))
      events += read_file(entry.path());
    for (const char* tag : {"validation_pictures/2", "validation_average_precision_by_class/",
                            "validation_localization_loss"})
      EXPECT_THAT(events, HasSubstr(tag));
    EXPECT_NE(events.find(png), std::string::npos);
  }

  const fs::path folder_ = fresh_folder("predict-objects"), data_ = folder_ / "data",
                 job_ = folder_ / "job";
};

TEST_F(PredictObjectsTest, SaysOfAPictureWhatItSaysOfTheSameSampleInPixels) {
  std::vector<fs::path> pictures = data::images_in(data_ / "coco/validation");
  ASSERT_EQ(pictures.size(), 6u);
  const Json samples = predict_checkpoint(job_, "validation", {0, 5})["predictions"];
  const Json found = predicted(job_, {pictures[0], pictures[5]});
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(found[i]["height"], 96);
    const Json& objects = found[i]["objects"];
    const Json& wanted = samples[i]["predicted"];
    ASSERT_EQ(objects.size(), wanted.size());
    ASSERT_GT(objects.size(), 10u);
    for (size_t k = 0; k < objects.size(); ++k) {
      EXPECT_EQ(objects[k]["score"], wanted[k]["score"]);
      EXPECT_EQ(objects[k]["label"], wanted[k]["label"]);
      EXPECT_EQ(objects[k]["class"], std::to_string(wanted[k]["label"].get<int>()));
      for (const char* border : {"xmin", "ymin", "xmax", "ymax"})
        EXPECT_NEAR(objects[k]["box"][border].get<double>(),
                    96 * wanted[k]["box"][border].get<double>(), 1e-4);
    }
  }
}

TEST_F(PredictObjectsTest, TellsAndDrawsOnlyWhatHasTheScore) {
  PictureOptions options;
  options.pictures = {data_ / "coco/validation"};
  options.drawn = folder_ / "drawn";
  const auto drawn = [&](float score) {
    options.least_score = score;
    const Json all = predict_pictures(job_, options)["predictions"];
    std::set<std::string> copies;
    for (const Json& one : all) copies.insert(read_file(one["drawn"].get<std::string>()));
    EXPECT_EQ(copies.size(), 6u);
    for (const Json& object : all[0]["objects"]) EXPECT_GE(object["score"].get<float>(), score);
    return std::pair(all[0]["objects"].size(), read_file(all[0]["drawn"].get<std::string>()));
  };
  const auto [many, with_many] = drawn(0);
  const auto [none, with_none] = drawn(1);
  EXPECT_GT(many, 0u);
  EXPECT_EQ(none, 0u);
  EXPECT_NE(with_many, with_none);
}

TEST_F(PredictObjectsTest, IsEvaluatedByClassAndWithPictures) {
  const Json evaluation = Document::load(job_ / "evaluations/1.json").value()["validation"];
  EXPECT_TRUE(evaluation["averagePrecision"].is_number());
  EXPECT_TRUE(evaluation["classificationLoss"].is_number());
  const Json& by_class = evaluation["averagePrecisionByClass"];
  ASSERT_TRUE(by_class.is_object());
  ASSERT_GT(by_class.size(), 1u);
  double sum = 0;
  for (const auto& [name, value] : by_class.items()) {
    EXPECT_THAT(name, testing::MatchesRegex("[0-9]"));
    sum += value.get<double>();
  }
  EXPECT_NEAR(evaluation["averagePrecision"].get<double>(),
              sum / static_cast<double>(by_class.size()), 1e-9);
  const auto pictures = data::images_in(job_ / "evaluations/pictures");
  ASSERT_EQ(pictures.size(), 3u);
  EXPECT_EQ(pictures[0].filename(), "validation-0.png");
  const std::string png = read_file(pictures[0]);
  const auto size = images::read_size(images::bytes_of(png), "picture");
  EXPECT_EQ(size.height, 320u);  // 96 pixels, enlarged
  EXPECT_GT(size.width, 640u);
  expect_shown("chief-0", png);
}

TEST_F(PredictObjectsTest, IsShownByAnEvaluatorInTheSameWay) {
  fs::remove_all(job_ / "evaluations");
  group::Membership membership = alone(folder_, folder_ / "training.yaml");
  membership.replicas = {{"chief", 1}, {"evaluator", 1}};
  membership.role = group::Role::evaluator;
  membership.role_name = "evaluator";
  ASSERT_EQ(run_evaluator(membership, {}), kSuccess);
  expect_shown("evaluator-0", read_file(job_ / "evaluations/pictures/validation-0.png"));
}

}  // namespace
}  // namespace muster::loop
