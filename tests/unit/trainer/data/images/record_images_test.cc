#include "trainer/data/images/record_images.h"

#include <cmath>

#include "common/error.h"
#include "gmock/gmock.h"
#include "tests/unit/trainer/data/idx_files.h"
#include "tests/unit/trainer/data/images/objects.h"
#include "tests/unit/trainer/images/fixture.h"
#include "trainer/data/sources/look.h"
#include "trainer/records/example.h"
#include "trainer/records/record_writer.h"

namespace muster::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kLabelMap = "item { id: 3 name: 'cat' } item { id: 7 name: 'dog' }";

std::string example(int number, int64_t label) {
  return records::write_example({.image = png(number), .label = label, .text = ""});
}

void put_records(const std::filesystem::path& path, const std::vector<std::string>& records) {
  records::RecordWriter writer(path);
  for (const std::string& record : records) writer.write(record);
  writer.finish();
}

spec::DataSource source_of(const std::filesystem::path& pattern,
                           const std::filesystem::path& label_map = "", double max_corrupt = 0.01) {
  spec::RecordSource records;
  records.files = {pattern};
  records.label_map = label_map;
  records.images = settings(8, 10);
  records.images.max_corrupt = max_corrupt;
  spec::DataSource source;
  source.kind = records;
  return source;
}

std::vector<int> labels(const Dataset& dataset) {
  std::vector<int> labels;
  for (uint64_t i = 0; i < dataset.size(); ++i) labels.push_back(dataset.label(i));
  return labels;
}

TEST(RecordImages, CountLabelsFromOneUnlessTold) {
  const TestFolder folder;
  const auto file = folder.path() / "train";
  put_records(file, {example(0, 1), example(1, 3), example(2, 2)});
  spec::DataSource source = source_of(file);
  EXPECT_THAT(labels(*open_dataset(source)), ElementsAre(0, 2, 1));
  EXPECT_EQ(open_dataset(source)->label_count(), 3);
  source.take = 1;
  EXPECT_EQ(open_dataset(source)->label_count(), 3);  // of the files, not of the part
  source.take = -1;
  std::get<spec::RecordSource>(source.kind).first_label = 0;
  EXPECT_THAT(labels(*open_dataset(source)), ElementsAre(1, 3, 2));
  EXPECT_EQ(open_dataset(source)->label_count(), 4);
}

TEST(RecordImages, TakeTheirClassesFromALabelMap) {
  const TestFolder folder;
  const auto file = folder.path() / "train", map = folder.write("map.pbtxt", kLabelMap);
  put_records(file, {example(0, 7), example(1, 3)});
  const auto dataset = open_dataset(source_of(file, map));
  EXPECT_THAT(labels(*dataset), ElementsAre(1, 0));
  EXPECT_EQ(dataset->label_count(), 2);
  put_records(file, {example(0, 7), example(1, 4)});
  EXPECT_THAT(error_of(source_of(file, map)),
              AllOf(HasSubstr("train: record 1 at byte "),
                    HasSubstr("image/class/label: expected an id of "), HasSubstr("found 4")));
}

// The map says how many classes there are, and each record its own label.
TEST(RecordImages, AreReadAtUseWhereALabelMapSaysTheClasses) {
  const TestFolder folder;
  const auto file = folder.path() / "train", map = folder.write("map.pbtxt", kLabelMap);
  put_records(file, {example(0, 7), example(1, 3), example(2, 4)});
  spec::DataSource source = source_of(file, map, 0);
  EXPECT_THAT(error_of(source), HasSubstr("found 4"));
  source.cache = false;
  const auto dataset = open_dataset(source);
  EXPECT_EQ(dataset->label_count(), 2);
  EXPECT_EQ(dataset->label(0), 1);
  EXPECT_EQ(dataset->label(1), 0);
  EXPECT_THROW(dataset->label(2), Invalid);
}

TEST(RecordImages, HaveFeaturesByAnyName) {
  const TestFolder folder;
  const auto file = folder.path() / "train";
  put_records(file, {example(0, 1)});
  spec::DataSource source = source_of(file);
  std::get<spec::RecordSource>(source.kind).label_key = "class";
  EXPECT_THAT(error_of(source),
              HasSubstr("record 0 at byte 0: class: expected one label, found 0"));
  std::get<spec::RecordSource>(source.kind).label_key = "image/class/label";
  std::get<spec::RecordSource>(source.kind).image_key = "picture";
  EXPECT_THAT(error_of(source), HasSubstr("picture: expected the bytes of one image"));
}

TEST(RecordImages, CountThroughTheShardsInTheirOrder) {
  const TestFolder folder;
  for (int i = 10; i >= 0; --i)
    put_records(folder.path() / ("train-" + std::to_string(i) + "-of-11"), {example(i, i + 1)});
  EXPECT_THAT(labels(*open_dataset(source_of(folder.path() / "train-*"))),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
}

TEST(RecordImages, AreSharedOutByFile) {
  const TestFolder folder;
  for (int i = 0; i < 3; ++i)
    put_records(folder.path() / ("train-" + std::to_string(i) + "-of-3"),
                {example(i, 2 * i + 1), example(i, 2 * i + 2)});
  spec::DataSource source = source_of(folder.path() / "train-*");
  source.shard = spec::ShardBy::file;
  const TrainingData first = open_training_data(source, {0, 1, 2}, {.rows = 2});
  const TrainingData second = open_training_data(source, {1, 1, 2}, {.rows = 2});
  EXPECT_THAT(labels(*first.samples), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(labels(*second.samples), ElementsAre(2, 3));
  EXPECT_EQ(first.samples->label_count(), 6);
  EXPECT_EQ(second.samples->label_count(), 6);
  EXPECT_EQ(first.shards.samples(), 6u);
  EXPECT_EQ(second.shards.samples(), 6u);
  EXPECT_THROW(open_training_data(source, {0, 1, 4}, {.rows = 2}), Invalid);
}

std::string with_boxes(int number, std::vector<images::Box> boxes) {
  records::DetectionExample example;
  example.image = png(number);
  example.boxes = std::move(boxes);
  return records::write_example(example, nullptr);
}

spec::DataSource object_source(const std::filesystem::path& file,
                               const std::filesystem::path& label_map, double max_corrupt = 0.01) {
  spec::DataSource source = source_of(file, label_map, max_corrupt);
  std::get<spec::RecordSource>(source.kind).labels = compute::LabelKind::objects;
  return source;
}

images::Box box_of(float ymin, float xmin, float ymax, float xmax, int32_t label) {
  images::Box box;
  box.ymin = ymin, box.xmin = xmin, box.ymax = ymax, box.xmax = xmax;
  box.label = label;
  return box;
}

TEST(RecordImages, WithObjectsHaveThoseThatCanBeUsed) {
  const TestFolder folder;
  const auto file = folder.path() / "train", map = folder.write("map.pbtxt", kLabelMap);
  images::Box crowd = box_of(0, 0, 1, 1, 3);
  crowd.crowd = true;
  crowd.area = 12;
  std::vector<images::Box> many(10000, box_of(0, 0, 0.5f, 0.5f, 3));
  many[99].label = 7;
  put_records(file, {with_boxes(0, {box_of(0.25f, 0.5f, 0.75f, 1, 7), crowd}), with_boxes(1, {}),
                     with_boxes(2, {box_of(0, NAN, 1, 1, 3), box_of(0, 0, HUGE_VALF, 1, 3),
                                    box_of(0.5f, 0, 0.5f, 1, 3), box_of(0.5f, 0, 0.25f, 1, 3),
                                    box_of(2, 2, 3, 3, 3), box_of(-1, -1, 0.5f, 2, 7)}),
                     with_boxes(3, many)});
  for (const bool cache : {true, false}) {
    spec::DataSource source = object_source(file, map);
    source.cache = cache;
    const auto dataset = open_dataset(source);
    EXPECT_EQ(dataset->object_classes(), 2);
    const std::vector<RowObjects> found = objects_of(*dataset);
    ASSERT_EQ(found.size(), 4u);
    using detection::Box, detection::Object;
    EXPECT_THAT(found[0].objects, ElementsAre(Object{Box{0.25f, 0.5f, 0.75f, 1}, 1, 1, false, 192},
                                              Object{Box{0, 0, 1, 1}, 0, 1, true, 12}));
    EXPECT_TRUE(found[1].objects.empty());
    EXPECT_THAT(found[2].objects, ElementsAre(Object{Box{0, 0, 0.5f, 1}, 1, 1, false, 384}));
    ASSERT_EQ(found[3].objects.size(), detection::ObjectList::kMost);
    EXPECT_EQ(found[3].objects[98].label, 0);
    EXPECT_EQ(found[3].objects[99].label, 1);
  }
}

TEST(RecordImages, MayBeInAListOfFiles) {
  const TestFolder folder;
  put_records(folder.path() / "b", {example(0, 1), example(1, 3)});
  put_records(folder.path() / "a-0-of-2", {example(2, 2)});
  put_records(folder.path() / "a-1-of-2", {example(3, 1)});
  spec::DataSource source;
  const auto list = [&](const std::vector<std::filesystem::path>& files) {
    source = source_of("");
    std::get<spec::RecordSource>(source.kind).files = files;
    std::get<spec::RecordSource>(source.kind).listed = true;
  };
  list({folder.path() / "b", folder.path() / "a-*"});
  EXPECT_THAT(labels(*open_dataset(source)), ElementsAre(0, 2, 1, 0));
  EXPECT_THAT(open_dataset(source)->describe(2), HasSubstr("a-0-of-2: record 0"));
  EXPECT_TRUE(unreadable_files(source).empty());
  list({folder.path() / "a-*", folder.path() / "a-1-of-2"});
  EXPECT_THAT(error_of(source), AllOf(HasSubstr("a-1-of-2: expected each file once")));
  list({folder.path() / "b", folder.path() / "none"});
  ASSERT_EQ(unreadable_files(source).size(), 1u);
  EXPECT_EQ(unreadable_files(source)[0].field, "fileList[1]");
}

// EXIF turns these pictures by a quarter or upside down; their boxes were drawn on the stored or on
// the seen picture.
TEST(RecordImages, HaveBoxesThatFitThePictureAsItIsSeen) {
  const TestFolder folder;
  const auto file = folder.path() / "train", map = folder.write("map.pbtxt", kLabelMap);
  const std::string turned = images::fixture("orientation-6.jpg");  // 19 x 27 pixels as stored
  const auto boxes_of = [&](int64_t height, int64_t width) {
    records::DetectionExample example;
    example.image = turned;
    example.height = height;
    example.width = width;
    example.boxes = {box_of(0.125f, 0.25f, 0.375f, 0.75f, 3)};
    put_records(file, {records::write_example(example, nullptr)});
    EncodedImage image;
    const RecordReader reader(std::get<spec::RecordSource>(object_source(file, map).kind));
    const records::RecordFile records(file);
    reader.read(records, records.index()[0], 0, image);
    return image;
  };
  const auto corners = [](const images::Box& box) {
    return std::vector<float>{box.ymin, box.xmin, box.ymax, box.xmax};
  };
  const auto seen = ElementsAre(0.125f, 0.25f, 0.375f, 0.75f);
  EXPECT_THAT(corners(boxes_of(19, 27).boxes[0]), ElementsAre(0.25f, 0.625f, 0.75f, 0.875f));
  EXPECT_EQ(boxes_of(19, 27).oddity, "");
  EXPECT_THAT(corners(boxes_of(27, 19).boxes[0]), seen);
  EXPECT_EQ(boxes_of(27, 19).oddity, "");
  EXPECT_THAT(corners(boxes_of(0, 0).boxes[0]), seen);
  EXPECT_THAT(corners(boxes_of(40, 60).boxes[0]), seen);
  EXPECT_THAT(boxes_of(40, 60).oddity,
              AllOf(HasSubstr("train: record 0 at byte 0: expected a picture of 40x60 pixels"),
                    HasSubstr("found one of 27x19")));
}

TEST(RecordImages, OfCrowdsOnlyAreRefusedForTrainingHoweverTheyAreKept) {
  const TestFolder folder;
  const auto file = folder.path() / "train", map = folder.write("map.pbtxt", kLabelMap);
  images::Box crowd = box_of(0, 0, 1, 1, 3);
  crowd.crowd = true;
  const auto open = [&](bool cache) {
    spec::DataSource source = object_source(file, map);
    source.cache = cache;
    open_training_data(source, {0, 1, 1}, {.rows = 2});
  };
  for (const bool cache : {true, false}) {
    put_records(file, {with_boxes(0, {crowd}), with_boxes(1, {})});
    EXPECT_THAT([&] { open(cache); },
                testing::ThrowsMessage<Invalid>(HasSubstr("found none, or crowds only")));
    put_records(file, {with_boxes(0, {crowd}), with_boxes(1, {box_of(0, 0, 1, 1, 3)})});
    EXPECT_NO_THROW(open(cache));
  }
}

TEST(RecordImages, WithoutAnyObjectAreRefusedForTraining) {
  const TestFolder folder;
  const auto file = folder.path() / "train", map = folder.write("map.pbtxt", kLabelMap);
  const std::vector<std::vector<std::string>> sets = {
      {with_boxes(0, {}), with_boxes(1, {})},
      {with_boxes(0, {box_of(10, 20, 30, 40, 3)}), with_boxes(1, {})}};  // in pixels
  for (const auto& records : sets) {
    put_records(file, records);
    const spec::DataSource source = object_source(file, map);
    EXPECT_EQ(error_of(source), "no error") << "it may be evaluated on";
    EXPECT_THAT(
        [&] {
          open_training_data(source, {0, 1, 1}, {.rows = 2});
        },
        testing::ThrowsMessage<Invalid>(
            AllOf(HasSubstr("data.train: expected an object in one of the 2 images, of which "),
                  HasSubstr("train: record 0 at byte 0 is the first, found none"),
                  HasSubstr("fractions of its image, from 0 to 1"))));
  }
}

TEST(RecordImages, WithAnObjectThatTheLabelMapLacksAreDamagedByName) {
  const TestFolder folder;
  const auto file = folder.path() / "train", map = folder.write("map.pbtxt", kLabelMap);
  const images::Box known = box_of(0, 0, 1, 1, 3), unknown = box_of(0, 0, 1, 1, 4);
  put_records(file, {with_boxes(0, {known}), with_boxes(1, {known, unknown}),
                     with_boxes(2, {box_of(0, 0, 0.5f, 1, 7)})});
  EXPECT_THAT(error_of(object_source(file, map)),
              AllOf(HasSubstr("train: record 1 at byte "),
                    HasSubstr("image/object/class/label: expected an id of the label map, found 4"),
                    HasSubstr("at most a share of 0.01 of 3, as maxCorrupt says, found 1")));
  const std::vector<RowObjects> found = objects_of(*open_dataset(object_source(file, map, 0.4)));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[1], found[2]) << "the next record in its place";
}

TEST(RecordImages, AreNotDamagedByFilesOfWhichNothingIsUsed) {
  const TestFolder folder;
  put_records(folder.path() / "train-0-of-2", {example(0, 1), example(1, 2)});
  const auto other = folder.path() / "train-1-of-2";
  put_records(other, {example(2, 3), example(3, 1)});
  std::string bytes = read_file(other);
  bytes[0] ^= 1;
  put(other, bytes);
  spec::DataSource source = source_of(folder.path() / "train-*", "", 0);
  EXPECT_THAT(error_of(source), HasSubstr("train-1-of-2: record 0 at byte 0"));
  source.take = 2;
  EXPECT_EQ(error_of(source), "no error");
}

TEST(RecordImages, AreRefusedIfOneOfTheirFilesIsNoFileOfRecords) {
  const TestFolder folder;
  put_records(folder.path() / "train-0-of-2", {example(0, 1), example(1, 2)});
  put(folder.path() / "train-1-of-2", "this is no TFRecord, whatever its name says\n");
  spec::DataSource source = source_of(folder.path() / "train-*", "", 0);
  EXPECT_THAT(error_of(source), HasSubstr("train-1-of-2: record 0 at byte 0"));
}

TEST(RecordImages, WithAnObjectThatTheModelHasNoClassForAreDamagedByName) {
  const TestFolder folder;
  const auto file = folder.path() / "train";
  const images::Box known = box_of(0, 0, 1, 1, 2), unknown = box_of(0, 0, 1, 1, 3);
  put_records(file, {with_boxes(0, {known}), with_boxes(1, {known, unknown}),
                     with_boxes(2, {box_of(0, 0, 0.5f, 1, 1)})});
  const auto source = [&](int32_t classes, double max_corrupt) {
    spec::DataSource source = object_source(file, "", max_corrupt);
    std::get<spec::RecordSource>(source.kind).model_classes = classes;
    return source;
  };
  EXPECT_THAT(error_of(source(2, 0.01)),
              AllOf(HasSubstr("train: record 1 at byte "),
                    HasSubstr("image/object/class/label: expected a label from 1 to 2, the model's "
                              "classes, found 3"),
                    HasSubstr("at most a share of 0.01 of 3, as maxCorrupt says, found 1")));
  const std::vector<RowObjects> found = objects_of(*open_dataset(source(2, 0.4)));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[1], found[2]) << "the next record in its place";
  for (const int32_t enough : {0, 3})
    EXPECT_EQ(objects_of(*open_dataset(source(enough, 0)))[1].objects.size(), 2u);
}

// Damage within a record leaves its number; damage of its length takes it out of the file.
TEST(RecordImages, AreCountedWhereTheyAreDamaged) {
  const TestFolder folder;
  const auto file = folder.path() / "train", map = folder.write("map.pbtxt", kLabelMap);
  const std::vector<std::string> records = {example(0, 7), example(1, 3), example(2, 3)};
  put_records(file, records);
  const std::string whole = read_file(file);
  std::string within = whole, length = whole;
  within[records[0].size() + 16 + 40] ^= 1;
  length[records[0].size() + 16] ^= 1;
  for (const auto& label_map : {std::filesystem::path(), map}) {
    put(file, within);
    EXPECT_THAT(error_of(source_of(file, label_map)),
                AllOf(HasSubstr("train: record 1 at byte "),
                      HasSubstr("bytes of data do not fit their checksum"),
                      HasSubstr("at most a share of 0.01 of 3, as maxCorrupt says, found 1")));
    EXPECT_EQ(open_dataset(source_of(file, label_map, 0.4))->size(), 3u);
    put(file, length);
    EXPECT_THAT(error_of(source_of(file, label_map)),
                AllOf(HasSubstr("train: record 1 at byte "), HasSubstr("does not fit its checksum"),
                      HasSubstr("at most a share of 0.01 of 3, as maxCorrupt says, found 1")));
    EXPECT_EQ(open_dataset(source_of(file, label_map, 0.4))->size(), 2u);
  }
}

}  // namespace
}  // namespace muster::data
