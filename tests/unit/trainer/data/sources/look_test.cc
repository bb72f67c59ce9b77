#include "trainer/data/sources/look.h"

#include "common/system/input_file.h"
#include "gmock/gmock.h"
#include "tests/unit/common/error_of.h"
#include "tests/unit/trainer/data/idx_files.h"
#include "tests/unit/trainer/data/images/objects.h"
#include "trainer/records/example.h"
#include "trainer/records/record_writer.h"

namespace muster::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Through the file, `bytes` from its end, a bit is not as it was.
std::string flipped(std::string text, size_t bytes) {
  text[text.size() - bytes] ^= 1;
  return text;
}

std::string error_of_reading(const spec::DataSource& source) {
  return test::error_of([&] { read_through(source); });
}

TEST(UnreadableFiles, AreEachNamedWithFieldAndReason) {
  const TestFolder folder;
  const auto files = unreadable_files(idx(folder.path() / "none", folder.path()));
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].field, "images");
  EXPECT_THAT(files[0].why, HasSubstr("none: expected IDX images, found no such file"));
  EXPECT_EQ(files[1].field, "labels");
  EXPECT_THAT(files[1].why, HasSubstr("expected IDX labels, found something that is no regular"));
}

TEST(UnreadableFiles, AreNoneOfASourceThatIsHereOrSynthetic) {
  const TestFolder folder;
  const auto images = folder.write("i", "not looked into"), labels = folder.write("l", "");
  EXPECT_TRUE(unreadable_files(idx(images, labels)).empty());
  spec::DataSource synthetic;
  synthetic.kind = spec::LinearSource{};
  EXPECT_TRUE(unreadable_files(synthetic).empty());
}

TEST(UnreadableFiles, OfAListAreNamedByTheirPlace) {
  const TestFolder folder;
  spec::DataSource source = idx(folder.write("i", ""), folder.write("l", ""));
  std::get<spec::IdxSource>(source.kind).listed = true;
  std::get<spec::IdxSource>(source.kind)
      .files.push_back(
          {std::get<spec::IdxSource>(source.kind).files[0].images, folder.path() / "none"});
  const auto files = unreadable_files(source);
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].field, "files[1].labels");
}

TEST(LookAt, SumsUpSeveralFiles) {
  const TestFolder folder;
  spec::DataSource source =
      idx(folder.write("i0", images_2x3(2)), folder.write("l0", labels_of({3, 8})));
  std::get<spec::IdxSource>(source.kind)
      .files.push_back({folder.write("i1", images_2x3(1)), folder.write("l1", labels_of({5}))});
  const auto facts = look_at(source);
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->samples, 3u);
  EXPECT_EQ(facts->label_count, 9);
  EXPECT_THAT(facts->largest_label, AllOf(HasSubstr("label 8 of sample 1 of "), HasSubstr("l0")));
}

TEST(LookAt, NotesClassesWithoutASample) {
  const TestFolder folder;
  const auto notes = [&](const std::string& labels, uint32_t count) {
    return look_at(idx(folder.write("i", images_2x3(count)), folder.write("l", labels)))->notes;
  };
  EXPECT_THAT(notes(labels_of({1, 0, 2}), 3), testing::IsEmpty());
  EXPECT_THAT(notes(labels_of({3, 1, 2}), 3),
              ElementsAre(HasSubstr("l: labels are from 1 to 3, and as they count from 0 there is "
                                    "a class 0 without a sample")));
  EXPECT_THAT(notes(labels_of({3, 0, 0}), 3),
              ElementsAre(HasSubstr("l: expected a sample of each class, found none of 1, 2")));
}

TEST(LookAt, NotesFilesThatAreNotUsed) {
  const TestFolder folder;
  for (const char* file : {"a/1.webp", "a/2.jpg", "b/3.jpg"}) put(folder.path() / file, "");
  EXPECT_THAT(look_at(folder_source(folder.path(), settings(4, 5)))->notes,
              ElementsAre(AllOf(HasSubstr("files that are not used"), HasSubstr(": 1 .webp"))));
}

TEST(LookAt, FindsCocoAnnotationsWithoutAnObjectToLearn) {
  const TestFolder folder;
  CocoFolder none(folder.path() / "none"), crowds(folder.path() / "crowds"),
      some(folder.path() / "some", {1, 2});
  none.add(picture(0, 10, 10), {});
  crowds.add(picture(0, 10, 10), {{1, {0, 0, 5, 5}, true}});
  some.add(picture(0, 10, 10), {{1, {0, 0, 5, 5}, false}});
  EXPECT_TRUE(look_at(none.source())->without_objects);
  EXPECT_TRUE(look_at(crowds.source())->without_objects);
  EXPECT_FALSE(look_at(some.source())->without_objects);
  EXPECT_THAT(look_at(some.source())->notes, ElementsAre(HasSubstr("found none of category 2")));
}

TEST(LookAt, NotesBoxesThatAreNotLearnedAsTheyAre) {
  const TestFolder folder;
  CocoFolder coco(folder.path());
  coco.add(picture(0, 10, 10), {{1, {6, 6, 9, 9}}, {1, {5, 4, 9, 10}}, {1, {0, 0, 5, 5}}});
  const spec::DataSource source = coco.source();
  const auto file = std::get<spec::CocoSource>(source.kind).annotations;
  EXPECT_THAT(look_at(source)->notes,
              ElementsAre(AllOf(HasSubstr("annotations.json: of 3 boxes, 2 cut at the border"),
                                HasSubstr("2 fit their images only as [x1, y1, x2, y2], the first "
                                          "of them annotations[0] (line 1, column "))));
  std::string text = InputFile(file).text(10000);
  text.replace(text.find("\"image_id\":0"), 12, "\"image_id\":7");
  put(file, text);
  EXPECT_THAT(look_at(source)->notes,
              ElementsAre(HasSubstr("1 left out because they belong to no image of the file, the "
                                    "first of them annotations[0] (line 1, column ")));
}

TEST(LookAt, RefusesAFileInPlaceOfAFolderAndTheReverse) {
  const TestFolder folder;
  const auto file = folder.write("file", "");
  EXPECT_THAT(look_at(folder_source(file))->malformed,
              HasSubstr("file: expected a folder, found a file"));
  EXPECT_THAT(look_at(idx(folder.path(), file))->malformed,
              HasSubstr("expected IDX images, found something that is no regular file"));
  EXPECT_THAT(look_at(idx(folder.path() / "none", folder.path()))->malformed,
              HasSubstr("expected IDX labels, found something that is no regular file"));
  CocoFolder coco(folder.path());
  spec::DataSource source = coco.source();
  std::get<spec::CocoSource>(source.kind).folder = file;
  EXPECT_THAT(look_at(source)->malformed, HasSubstr("file: expected a folder, found a file"));
}

TEST(LookAt, FindsTheSizesOfWhichCocoAnnotationsHaveNoObject) {
  const TestFolder folder;
  CocoFolder small(folder.path() / "small"), others(folder.path() / "others"),
      border(folder.path() / "border");
  small.add(picture(0, 200, 200), {{1, {0, 0, 31, 31}, false}, {1, {0, 0, 100, 100}, true}});
  others.add(picture(0, 200, 200), {{1, {0, 0, 33, 33}, false}, {1, {0, 0, 100, 100}, false}});
  border.add(picture(0, 200, 200), {{1, {0, 0, 32, 32}, false}});
  EXPECT_THAT(look_at(small.source())->sizes_without_objects, ElementsAre("Medium", "Large"));
  EXPECT_THAT(look_at(others.source())->sizes_without_objects, ElementsAre("Small"));
  EXPECT_THAT(look_at(border.source())->sizes_without_objects, ElementsAre("Large"));
}

// The names are compared with those of other data, so they stand at the numbers that the classes
// get.
TEST(LookAt, NamesCocoCategoriesByTheNumbersThatTheModelGivesThem) {
  const TestFolder folder;
  CocoFolder coco(folder.path(), {1, 3});
  coco.add(picture(0, 10, 10), {{1, {0, 0, 5, 5}, false}});
  spec::DataSource source = coco.source();
  EXPECT_THAT(look_at(source)->classes, ElementsAre("category 1", "category 3"));
  std::get<spec::CocoSource>(source.kind).model_classes = 3;
  EXPECT_THAT(look_at(source)->classes, ElementsAre("category 1", "no id 2", "category 3"));
  EXPECT_EQ(look_at(source)->label_count, 2);
}

TEST(LookAt, KnowsNothingWhereAFileIsMissing) {
  const TestFolder folder;
  EXPECT_FALSE(look_at(idx(folder.write("i", images_2x3(2)), folder.path() / "none")));
}

TEST(LookAt, ListsFoldersAndReadsNoImage) {
  const TestFolder folder;
  for (const char* file : {"b/1.jpg", "b/2.png", "a/3.jpeg"}) put(folder.path() / file, "no image");
  const auto facts = look_at(folder_source(folder.path(), settings(4, 5)));
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->malformed, "");
  EXPECT_EQ(facts->samples, 3u);
  EXPECT_THAT(facts->sample_shape, ElementsAre(4, 5, 3));
  EXPECT_EQ(facts->label_count, 2);
  EXPECT_THAT(facts->classes, ElementsAre("a", "b"));
  EXPECT_THAT(facts->notes, testing::IsEmpty());
  std::filesystem::create_directory(folder.path() / "c");
  EXPECT_THAT(look_at(folder_source(folder.path(), settings(4, 5)))->notes,
              ElementsAre(HasSubstr("expected a sample of each class, found none of c")));
  put(folder.path() / "one/x/1.jpg", "no image");
  EXPECT_THAT(look_at(folder_source(folder.path() / "one", settings(4, 5)))->notes,
              ElementsAre(HasSubstr("\"x\" is the only class")));
  const auto missing = unreadable_files(folder_source(folder.path() / "none"));
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_EQ(missing[0].field, "path");
  EXPECT_THAT(missing[0].why, HasSubstr("none: expected a folder, found none"));
  EXPECT_FALSE(look_at(folder_source(folder.path() / "none")));
  EXPECT_THAT(look_at(folder_source(folder.path() / "a"))->malformed,
              HasSubstr("expected a folder for each class, found none"));
}

spec::DataSource csv_source(const std::filesystem::path& file, double max_corrupt) {
  spec::ImageCsvSource csv{file, "", {}, settings(4, 5)};
  csv.images.max_corrupt = max_corrupt;
  spec::DataSource source;
  source.kind = csv;
  return source;
}

TEST(LookAt, MissesFilesOfAList) {
  const TestFolder folder;
  put(folder.path() / "1.jpg", "");
  const auto list = folder.write("list.csv", "1.jpg,4\n2.jpg,7\n3.jpg,1\n");
  EXPECT_THAT(look_at(csv_source(list, 0.5))->malformed,
              AllOf(HasSubstr("list.csv: expected files for its 3 images, found none for 2: "),
                    HasSubstr("2.jpg, "), HasSubstr("3.jpg")));
  put(folder.path() / "2.jpg", "");
  const auto facts = look_at(csv_source(list, 0.5));
  EXPECT_EQ(facts->malformed, "");
  EXPECT_EQ(facts->samples, 3u);
  EXPECT_EQ(facts->label_count, 8);
  EXPECT_THAT(
      facts->notes,
      ElementsAre(AllOf(HasSubstr("found none for 1: "), HasSubstr("3.jpg; they are left out")),
                  HasSubstr("list.csv: expected a sample of each class, found none of 0, "
                            "2, 3, 5, 6")));
  EXPECT_THAT(facts->largest_label, AllOf(HasSubstr("label 7 of "), HasSubstr("2.jpg in ")));
  EXPECT_THAT(look_at(csv_source(folder.write("list.csv", "1.jpg\n"), 0))->malformed,
              HasSubstr("list.csv: line 1, column 1: expected path,label"));
  EXPECT_EQ(unreadable_files(csv_source(folder.path() / "none", 0)).at(0).field, "file");
}

TEST(LookAt, CountsRecordsAndTakesClassesFromTheLabelMap) {
  const TestFolder folder;
  const auto put_records = [&](const char* name, const std::vector<std::string>& records) {
    records::RecordWriter writer(folder.path() / name);
    for (const std::string& record : records) writer.write(record);
    writer.finish();
  };
  const std::string example = records::write_example({.image = "no image", .label = 2, .text = ""});
  put_records("train-0-of-2", {example, example});
  put_records("train-1-of-2", {example});
  spec::RecordSource records;
  records.files = {folder.path() / "train-*"};
  records.images = settings(4, 5);
  spec::DataSource source;
  source.kind = records;
  const auto facts = look_at(source);
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->malformed, "");
  EXPECT_EQ(facts->samples, 3u);
  EXPECT_EQ(facts->files, 2u);
  EXPECT_EQ(facts->label_count, 0);  // not known without reading them all
  records.label_map = folder.write("map", "item {id: 2 name: 'b'} item {id: 1 name: 'a'}");
  source.kind = records;
  EXPECT_THAT(look_at(source)->classes, ElementsAre("a", "b"));
  EXPECT_EQ(look_at(source)->label_count, 2);
  put_records("train-0-of-2", {"no example"});
  put_records("train-1-of-2", {"no example"});
  EXPECT_THAT(look_at(source)->malformed,
              HasSubstr("train-0-of-2: record 0 at byte 0: expected a tf.train.Example"));
  records.files = {folder.path() / "test-*"};
  records.label_map = folder.path() / "none";
  source.kind = records;
  const auto missing = unreadable_files(source);
  ASSERT_EQ(missing.size(), 2u);
  EXPECT_EQ(missing[0].field, "files");
  EXPECT_EQ(missing[1].field, "labelMap");
}

TEST(ReadThrough, FindsWhatALookAtTheHeadersCannotSee) {
  const TestFolder folder;
  const std::string zipped = gzip(images_2x3(3));
  const auto labels = folder.write("l", labels_of({1, 2, 3}));
  const spec::DataSource whole = idx(folder.write("whole.gz", zipped), labels);
  EXPECT_EQ(error_of_reading(whole), "no error");
  const spec::DataSource damaged = idx(folder.write("damaged.gz", flipped(zipped, 6)), labels);
  ASSERT_TRUE(look_at(damaged));
  EXPECT_EQ(look_at(damaged)->malformed, "");
  EXPECT_THAT(error_of_reading(damaged),
              AllOf(HasSubstr("damaged.gz: damaged gzip data"), HasSubstr("CRC mismatch")));
  const spec::DataSource cut =
      idx(folder.write("cut.gz", zipped.substr(0, zipped.size() - 3)), labels);
  EXPECT_THAT(error_of_reading(cut), HasSubstr("cut.gz: truncated"));
}

}  // namespace
}  // namespace muster::data
