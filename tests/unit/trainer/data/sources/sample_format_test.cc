#include "trainer/data/sources/sample_format.h"

#include "gmock/gmock.h"
#include "tests/unit/trainer/data/idx_files.h"
#include "tests/unit/trainer/data/images/pictures.h"
#include "trainer/records/example.h"
#include "trainer/records/record_writer.h"

namespace muster::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

SampleFormat some_format() {
  return {{30, 40, 3}, compute::ElementType::uint8, 2.0f / 255, -1.0f, {"cat", "dog"}};
}

TEST(SampleFormatTest, ReadsBackWhatItWrote) {
  const SampleFormat format = some_format();
  EXPECT_EQ(parse_format(to_json(format), "file"), format);
  const SampleFormat floats{{7}, compute::ElementType::float32, 1, 0, {}};
  EXPECT_EQ(parse_format(Json::parse(to_json(floats).dump()), "file"), floats);
}

TEST(SampleFormatTest, RefusesWhatItDidNotWriteNamingTheField) {
  const struct {
    const char* field;
    Json value;
    const char* expected;
  } cases[] = {
      {"shape", nullptr, "file: shape: expected a list of numbers of at least 1"},
      {"shape", Json::array(), "file: shape: expected a list"},
      {"shape", {30, 0}, "file: shape: expected a list"},
      {"shape", {30, 1.5}, "file: shape: expected a list"},
      {"shape", {int64_t{1} << 40, int64_t{1} << 40}, "file: shape: expected a list"},
      {"shape", {1, 1, 1, 1, 1, 1, 1, 1, 1}, "file: shape: expected a list"},
      {"shape", {{"a", 3}}, "file: shape: expected a list"},
      {"type", "int4", "file: type: expected uint8 or float32, found \"int4\""},
      {"scale", "1", "file: scale: expected a number"},
      {"offset", 1e300, "file: offset: expected a number"},
      {"classes", "cat", "file: classes: expected a list of names"},
      {"classes", {"cat", 2}, "file: classes: expected a list of names"},
  };
  for (const auto& [field, value, expected] : cases) {
    Json json = to_json(some_format());
    json[field] = value;
    try {
      parse_format(json, "file");
      ADD_FAILURE() << field << " " << value;
    } catch (const Invalid& error) {
      EXPECT_THAT(error.what(), HasSubstr(expected));
    }
  }
  EXPECT_THROW(parse_format(nullptr, "file"), Invalid);
}

TEST(SampleFormatTest, TellsPicturesFromOtherSamples) {
  const auto is_picture = [](std::vector<int64_t> shape, compute::ElementType type) {
    return SampleFormat{std::move(shape), type, 1, 0, {}}.is_picture();
  };
  for (const auto& shape : {std::vector<int64_t>{28, 28}, {28, 28, 1}, {28, 28, 3}}) {
    EXPECT_TRUE(is_picture(shape, compute::ElementType::uint8));
    EXPECT_FALSE(is_picture(shape, compute::ElementType::float32));
  }
  for (const auto& shape : {std::vector<int64_t>{784}, {28, 28, 2}, {2, 28, 28, 3}})
    EXPECT_FALSE(is_picture(shape, compute::ElementType::uint8));
}

TEST(SampleFormatTest, NamesClassesByNumberWhereTheyHaveNoNames) {
  EXPECT_EQ(some_format().class_name(1), "dog");
  EXPECT_EQ(some_format().class_name(2), "2");
}

TEST(SampleFormatTest, IsThatOfADataSetAndOfItsSourceAlike) {
  const TestFolder folder;
  put(folder.path() / "images/cat/1.png", png(1));
  put(folder.path() / "images/dog/1.jpg", jpeg(2));
  spec::ImageSettings images = settings(8, 10);
  images.offset = -1;
  const spec::DataSource source = folder_source(folder.path() / "images", images);
  const SampleFormat format = open_dataset(source)->format();
  EXPECT_EQ(
      format,
      (SampleFormat{{8, 10, 3}, compute::ElementType::uint8, images.scale, -1, {"cat", "dog"}}));
  EXPECT_EQ(format_of(source), format);
  const auto digits =
      idx(folder.write("idx-images", images_2x3(2)), folder.write("idx-labels", labels_of({0, 1})));
  EXPECT_EQ(format_of(digits), open_dataset(digits)->format());
  EXPECT_THAT(format_of(digits).shape, ElementsAre(2, 3));
}

TEST(SampleFormatTest, OfASourceWithoutItsFilesIsKnownAsFarAsTheManifestSaysIt) {
  const SampleFormat format = format_of(folder_source("/nowhere", settings(8, 10)));
  EXPECT_THAT(format.shape, ElementsAre(8, 10, 3));
  EXPECT_THAT(format.classes, IsEmpty());
  try {
    format_of(idx("/nowhere/images", "/nowhere/labels"));
    FAIL();
  } catch (const Invalid& error) {
    EXPECT_THAT(error.what(), HasSubstr("expected the files of data.train.idx"));
  }
}

TEST(SampleFormatTest, HasTheNamesForPeopleOfALabelMap) {
  const TestFolder folder;
  const auto file = folder.path() / "train";
  records::RecordWriter writer(file);
  writer.write(records::write_example({.image = png(1), .label = 7, .text = ""}));
  writer.finish();
  spec::RecordSource records;
  records.files = {file};
  records.label_map = folder.write(
      "map", "item { id: 7 name: 'n02' display_name: 'dog' } item { id: 3 name: 'cat' }");
  records.images = settings(8, 10);
  spec::DataSource source;
  source.kind = records;
  EXPECT_THAT(open_dataset(source)->format().classes, ElementsAre("cat", "dog"));
}

TEST(SampleFormatTest, HasNamesThatJsonCanHoldWhateverAFolderIsCalled) {
  const TestFolder folder;
  put(folder.path() / "caf\xe9/1.png", png(1));
  const auto dataset = open_dataset(folder_source(folder.path()));
  EXPECT_THAT(dataset->format().classes, ElementsAre("caf\xef\xbf\xbd"));
}

}  // namespace
}  // namespace muster::data
