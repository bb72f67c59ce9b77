#include "trainer/records/example.h"

#include <cmath>
#include <functional>

#include "common/system/file.h"
#include "gmock/gmock.h"
#include "proto/muster/example.pb.h"
#include "tests/unit/trainer/records/fixture.h"
#include "trainer/records/record_file.h"

namespace muster::records {
namespace {

using images::Box;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

LabelMap animals() {
  return {{{1, "person", ""}, {3, "dog", "Hund"}}, "labels"};
}

std::string record_of(const std::string& file, size_t index) {
  const RecordFile records(fixture(file));
  std::string bytes;
  records.read(records.index().at(index), index, bytes);
  return bytes;
}

DetectionExample read(const std::string& bytes, const LabelMap* labels = nullptr) {
  DetectionExample example;
  ExampleReader().read(bytes, "FILE: record 3", labels, example);
  return example;
}

const Box kDog{.ymin = 0.25f,
               .xmin = 0.5f,
               .ymax = 0.75f,
               .xmax = 1.0f,
               .label = 3,
               .difficult = true,
               .area = 64.5f};
const Box kPeople{.ymin = 0.0f,
                  .xmin = 0.125f,
                  .ymax = 1.0f,
                  .xmax = 0.25f,
                  .label = 1,
                  .crowd = true,
                  .area = 12.25f};

TEST(DetectionExample, IsReadAsTensorFlowWritesIt) {
  const DetectionExample example = read(record_of("detection.tfrecord", 0));
  EXPECT_EQ(example.image, read_file(fixture("../images/halved-chroma.jpg")));
  EXPECT_EQ(example.format, "jpeg");
  EXPECT_EQ(example.filename, "first.jpg");
  EXPECT_EQ(example.source_id, "17");
  EXPECT_EQ(example.height, 19);
  EXPECT_EQ(example.width, 27);
  EXPECT_THAT(example.boxes, ElementsAre(kDog, kPeople));
  EXPECT_EQ(example.problems, images::BoxProblems());
}

TEST(DetectionExample, MayHaveNoBoxes) {
  const DetectionExample example = read(record_of("detection.tfrecord", 1));
  EXPECT_THAT(example.boxes, IsEmpty());
  EXPECT_FALSE(example.image.empty());
  EXPECT_EQ(example.filename, "");
}

TEST(ExampleReader, KeepsNothingOfTheExampleBefore) {
  ExampleReader reader;
  DetectionExample example;
  reader.read(record_of("detection.tfrecord", 0), "a", nullptr, example);
  reader.read(record_of("detection.tfrecord", 1), "b", nullptr, example);
  EXPECT_THAT(example.boxes, IsEmpty());
  EXPECT_EQ(example.source_id, "");
  reader.read(record_of("detection.tfrecord", 0), "c", nullptr, example);
  EXPECT_THAT(example.boxes, ElementsAre(kDog, kPeople));
}

TEST(ClassificationExample, IsReadAsTensorFlowWritesIt) {
  ClassificationExample example;
  ExampleReader().read(record_of("classification.tfrecord", 0), "r", example);
  EXPECT_EQ(example.label, 4);
  EXPECT_EQ(example.text, "class 4");
  EXPECT_EQ(example.image, read_file(fixture("../images/halved-chroma.jpg")));
}

TEST(WriteExample, WritesWhatIsRead) {
  const LabelMap labels = animals();
  DetectionExample example = read(record_of("detection.tfrecord", 0));
  const DetectionExample again = read(write_example(example, &labels), &labels);
  EXPECT_EQ(again.image, example.image);
  EXPECT_EQ(again.format, example.format);
  EXPECT_EQ(again.filename, example.filename);
  EXPECT_EQ(again.source_id, example.source_id);
  EXPECT_EQ(again.height, example.height);
  EXPECT_EQ(again.width, example.width);
  EXPECT_EQ(again.boxes, example.boxes);
  example.boxes.clear();
  EXPECT_THAT(read(write_example(example, &labels), &labels).boxes, IsEmpty());

  const ClassificationExample picture{.image = "bytes", .label = 7, .text = "seven"};
  ClassificationExample read_again;
  ExampleReader().read(write_example(picture), "r", read_again);
  EXPECT_EQ(read_again.image, "bytes");
  EXPECT_EQ(read_again.label, 7);
  EXPECT_EQ(read_again.text, "seven");
}

TEST(DetectionExample, HasTheIdsOfTheLabelMap) {
  const LabelMap others({{5, "dog", ""}, {9, "p", "person"}}, "labels");
  const DetectionExample example = read(record_of("detection.tfrecord", 0), &others);
  ASSERT_EQ(example.boxes.size(), 2u);
  EXPECT_EQ(example.boxes[0].label, 5);
  EXPECT_EQ(example.boxes[1].label, 9);
}

TEST(DetectionExample, CountsBoxesThatAreOfNoUse) {
  tfexample::Example changed;
  changed.ParseFromString(record_of("detection.tfrecord", 0));
  auto& features = *changed.mutable_features()->mutable_feature();
  features["image/object/bbox/ymin"].mutable_float_list()->set_value(0, NAN);
  features["image/object/bbox/xmax"].mutable_float_list()->set_value(1, 0.125f);
  const DetectionExample example = read(changed.SerializeAsString());
  EXPECT_THAT(example.boxes, IsEmpty());
  EXPECT_EQ(example.problems, (images::BoxProblems{.not_finite = 1, .no_area = 1}));
}

TEST(DetectionExample, SaysWhatIsWrong) {
  using Features = google::protobuf::Map<std::string, tfexample::Feature>;
  const LabelMap labels = animals();
  struct Row {
    std::function<void(Features&)> change;
    const LabelMap* labels;
    const char* message;
  };
  for (const Row& row : std::initializer_list<Row>{
           {[](Features& f) { f.erase("image/encoded"); }, nullptr,
            "FILE: record 3: image/encoded: expected the bytes of one image, found 0 values"},
           {[](Features& f) { f["image/encoded"].mutable_bytes_list()->set_value(0, ""); }, nullptr,
            "image/encoded: expected the bytes of one image, found none"},
           {[](Features& f) { f["image/encoded"].mutable_bytes_list()->add_value("x"); }, nullptr,
            "expected the bytes of one image, found 2 values"},
           {[](Features& f) { f["image/encoded"].mutable_float_list(); }, nullptr,
            "image/encoded: expected bytes, found floats"},
           {[](Features& f) { f["image/object/bbox/xmin"].mutable_float_list()->add_value(0); },
            nullptr, "image/object/bbox/xmin: expected 2 values, one a box, found 3"},
           {[](Features& f) { f.erase("image/object/bbox/ymin"); }, nullptr,
            "image/object/bbox/xmin: expected 0 values, one a box, found 2"},
           {[](Features& f) { f.erase("image/object/class/label"); }, nullptr,
            "image/object/class/label: expected 2 values, one a box, found 0"},
           {[](Features& f) { f["image/object/is_crowd"].mutable_int64_list()->add_value(1); },
            nullptr, "image/object/is_crowd: expected 2 values"},
           {[](Features& f) { f["image/object/area"].mutable_int64_list(); }, nullptr,
            "image/object/area: expected floats, found int64s"},
           {[](Features& f) {
              f["image/object/class/label"].mutable_int64_list()->set_value(0, 0);
            },
            nullptr, "image/object/class/label: expected a label of at least 1, found 0"},
           {[](Features& f) {
              f["image/object/class/label"].mutable_int64_list()->set_value(0, int64_t{1} << 40);
            },
            nullptr, "expected a label of at least 1, found 1099511627776"},
           {[](Features& f) {
              f["image/object/class/text"].mutable_bytes_list()->set_value(0, "cat");
            },
            &labels, "image/object/class/text: expected a class of the label map, found \"cat\""},
           {[](Features& f) {
              f.erase("image/object/class/text");
              f["image/object/class/label"].mutable_int64_list()->set_value(0, 2);
            },
            &labels, "image/object/class/label: expected an id of the label map, found 2"},
       }) {
    tfexample::Example example;
    example.ParseFromString(record_of("detection.tfrecord", 0));
    row.change(*example.mutable_features()->mutable_feature());
    EXPECT_THAT(error_of([&] { read(example.SerializeAsString(), row.labels); }),
                HasSubstr(row.message));
  }
}

TEST(ClassificationExample, SaysWhatIsWrong) {
  ClassificationExample example;
  const auto read_label = [&](const std::string& bytes) {
    return error_of([&] { ExampleReader().read(bytes, "FILE", example); });
  };
  EXPECT_THAT(read_label(record_of("detection.tfrecord", 0)),
              HasSubstr("FILE: image/class/label: expected one label, found 0"));
  EXPECT_THAT(read_label(write_example(ClassificationExample{"x", -1, ""})),
              HasSubstr("expected a label of at least 0, found -1"));
}

TEST(ExampleReader, RefusesWhatIsNoExample) {
  EXPECT_THAT(
      error_of([] { read("no example"); }),
      HasSubstr("FILE: record 3: expected a tf.train.Example, found 10 bytes of something else"));
  const std::string bytes = record_of("detection.tfrecord", 0);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(error_of([&] { read(bytes.substr(0, size)); }), "no error") << size;
  }
}

TEST(ExampleReader, TakesTenThousandBoxes) {
  DetectionExample example;
  example.image = "x";
  example.boxes.assign(10000, kDog);
  EXPECT_EQ(read(write_example(example, nullptr)).boxes.size(), 10000u);
}

}  // namespace
}  // namespace muster::records
