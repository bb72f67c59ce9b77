#include "trainer/data/look.h"

#include "common/error.h"
#include "gmock/gmock.h"
#include "tests/unit/trainer/data/idx_files.h"

namespace muster::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Through the file, `bytes` from its end, a bit is not as it was.
std::string flipped(std::string text, size_t bytes) {
  text[text.size() - bytes] ^= 1;
  return text;
}

std::string error_of_reading(const spec::DataSource& source) {
  try {
    read_through(source);
  } catch (const Invalid& error) {
    return error.what();
  }
  return "no error";
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

TEST(LookAt, KnowsNothingWhereAFileIsMissing) {
  const TestFolder folder;
  EXPECT_FALSE(look_at(idx(folder.write("i", images_2x3(2)), folder.path() / "none")));
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
