#include "trainer/records/file_pattern.h"

#include "gmock/gmock.h"
#include "tests/unit/trainer/records/fixture.h"

namespace muster::records {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Row {
  const char* pattern;
  std::vector<std::string> files;
  std::vector<std::string> expected;  // names of files, or what the error says
};

std::vector<std::string> expanded(const Row& row) {
  const TestFolder folder;
  for (const std::string& file : row.files) folder.write(file, "x");
  std::vector<std::string> names;
  try {
    for (const auto& path : expand((folder.path() / row.pattern).string())) {
      EXPECT_EQ(path.parent_path(), folder.path());
      names.push_back(path.filename());
    }
  } catch (const Invalid& error) {
    return {error.what()};
  }
  return names;
}

TEST(FilePattern, GivesShardsInTheOrderOfTheirIndex) {
  for (const Row& row : std::initializer_list<Row>{
           {"train-*-of-*.tfrecord",
            {"train-00001-of-00003.tfrecord", "train-00000-of-00003.tfrecord",
             "train-00002-of-00003.tfrecord", "val-00000-of-00001.tfrecord"},
            {"train-00000-of-00003.tfrecord", "train-00001-of-00003.tfrecord",
             "train-00002-of-00003.tfrecord"}},
           {"pet.record-?????"
            "-of-00002",
            {"pet.record-00000-of-00002", "pet.record-00001-of-00002"},
            {"pet.record-00000-of-00002", "pet.record-00001-of-00002"}},
           {"t-*",
            {"t-0-of-11", "t-1-of-11", "t-2-of-11", "t-3-of-11", "t-4-of-11", "t-5-of-11",
             "t-6-of-11", "t-7-of-11", "t-8-of-11", "t-9-of-11", "t-10-of-11"},
            {"t-0-of-11", "t-1-of-11", "t-2-of-11", "t-3-of-11", "t-4-of-11", "t-5-of-11",
             "t-6-of-11", "t-7-of-11", "t-8-of-11", "t-9-of-11", "t-10-of-11"}},
           {"*-of-*", {"b-0-of-1", "a-1-of-2", "a-0-of-2"}, {"a-0-of-2", "a-1-of-2", "b-0-of-1"}},
           {"*", {"b", "a.tfrecord", "state-of-the-art"}, {"a.tfrecord", "b", "state-of-the-art"}},
           {"one.tfrecord", {"one.tfrecord", "two.tfrecord"}, {"one.tfrecord"}},
           {"coco.record-00001-of-00100",
            {"coco.record-00000-of-00100", "coco.record-00001-of-00100"},
            {"coco.record-00001-of-00100"}},
       }) {
    EXPECT_EQ(expanded(row), row.expected) << row.pattern;
  }
}

TEST(FilePattern, SaysWhatIsMissing) {
  for (const Row& row : std::initializer_list<Row>{
           {"train-*", {"val-0-of-1"}, {"train-*: expected at least one file with this name"}},
           {"none.tfrecord", {}, {"none.tfrecord: expected at least one file with this name"}},
           {"t-*", {"t-0-of-3", "t-2-of-3"}, {"expected 3 shards, found 2: shard 1 is missing"}},
           {"t-*", {"t-0-of-3", "t-1-of-3"}, {"expected 3 shards, found 2: shard 2 is missing"}},
           {"t-*", {"t-1-of-3", "t-2-of-3"}, {"shard 0 is missing"}},
           {"t-*", {"t-0-of-18446744073709551615"}, {"shard 1 is missing"}},
           {"t-*", {"t-0-of-1", "t-0-of-2", "t-1-of-2"}, {"expected shards of one set, found"}},
           {"t-*", {"t-0-of-2", "t-00-of-2", "t-1-of-2"}, {"expected shard 0 of 2 once"}},
           {"t-*", {"t-0-of-1", "t-1-of-1"}, {"expected an index below 1"}},
           {"t-*", {"t-0-of-0"}, {"expected an index below 0"}},
           {"t-*", {"t-0-of-1", "t-readme"}, {"expected only shards such as"}},
       }) {
    EXPECT_THAT(expanded(row), ElementsAre(HasSubstr(row.expected.front())));
  }
}

TEST(FilePattern, TakesFoldersByPatternToo) {
  const TestFolder folder;
  for (const char* part : {"a", "b"}) {
    std::filesystem::create_directory(folder.path() / part);
    folder.write(std::string(part) + "/x-0-of-1", "x");
  }
  EXPECT_THAT(expand((folder.path() / "*" / "x-*").string()),
              ElementsAre(folder.path() / "a/x-0-of-1", folder.path() / "b/x-0-of-1"));
  for (const char* nowhere : {"none/x-?-of-1", "a/x-0-of-1/x-*"})
    EXPECT_THROW(expand((folder.path() / nowhere).string()), Invalid) << nowhere;
}

}  // namespace
}  // namespace muster::records
