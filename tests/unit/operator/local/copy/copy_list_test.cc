#include "operator/local/copy/copy_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/system/file.h"
#include "tests/unit/common/error_of.h"
#include "tests/unit/common/temporary_folder.h"

namespace muster::local {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class CopyList : public testing::Test {
 protected:
  fs::path path(const std::string& name) const { return folder_.path() / name; }
  void write(const std::string& name, const std::string& text = "x") {
    fs::create_directories(path(name).parent_path());
    write_file_atomically(path(name), text);
  }
  std::vector<Copy> list(const std::string& name, const fs::path& but = "") {
    return list_copies({{name, "hosts.yaml:7: copy[0]"}}, folder_.path(), but);
  }
  std::vector<std::string> names(const std::string& name, const fs::path& but = "") {
    const std::vector<Copy> copies = list(name, but);
    std::vector<std::string> names;
    for (const CopyEntry& entry : copies[0].entries) names.push_back(entry.name);
    return names;
  }
  std::string problem_of(const std::string& name) {
    return test::error_of([&] { list(name); });
  }

  test::TemporaryFolder folder_;
};

TEST_F(CopyList, AFileIsItself) {
  write("train.py", "12345");
  ::chmod(path("train.py").c_str(), 0750);
  const std::vector<Copy> copies = list("train.py");
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].path, path("train.py"));
  EXPECT_EQ(copies[0].source, path("train.py"));
  ASSERT_EQ(copies[0].entries.size(), 1u);
  const CopyEntry& file = copies[0].entries[0];
  EXPECT_EQ(file.name, "");
  EXPECT_FALSE(file.is_folder);
  EXPECT_EQ(file.size, 5u);
  EXPECT_EQ(file.mode, 0750u);
  EXPECT_GT(file.modified, int64_t{1'600'000'000} * 1'000'000'000);
}

TEST_F(CopyList, FoldersComeBeforeWhatIsInThem) {
  write("data/b/two words");
  write("data/a\nline");
  fs::create_directory(path("data/empty"));
  EXPECT_THAT(names("data/"), ElementsAre("", "a\nline", "b", "b/two words", "empty"));
  EXPECT_EQ(list("./x/../data")[0].path, path("data"));
  EXPECT_EQ(list(path("data").string())[0].path, path("data"));
}

TEST_F(CopyList, LinksAreFollowed) {
  write("elsewhere/set/file", "12");
  fs::create_directory(path("data"));
  fs::create_directory_symlink("../elsewhere/set", path("data/set"));
  fs::create_symlink("../elsewhere/set/file", path("data/one"));
  fs::create_directory_symlink("data", path("link"));
  EXPECT_THAT(names("link"), ElementsAre("", "one", "set", "set/file"));
  EXPECT_EQ(list("link")[0].entries[1].size, 2u);
}

TEST_F(CopyList, WhatNobodyWantsIsLeftOut) {
  write("code/__pycache__/a.pyc");
  write("code/a.py");
  write("code/.sub.muster-copy");
  write("code/.muster-copy.part");
  write("code/runs/mnist/job.json");
  EXPECT_THAT(names("code", path("code/runs/mnist")), ElementsAre("", "a.py", "runs"));
}

TEST_F(CopyList, WhatCannotBeCopiedIsNamed) {
  EXPECT_EQ(problem_of("data"), "hosts.yaml:7: copy[0]: expected a file or folder, found none at " +
                                    path("data").string());
  fs::create_directory(path("data"));
  fs::create_symlink("nowhere", path("data/link"));
  EXPECT_THAT(problem_of("data"), HasSubstr("data/link, a link that leads to nothing"));
  fs::remove(path("data/link"));
  fs::create_directory_symlink("..", path("data/round"));
  EXPECT_THAT(problem_of("data"), HasSubstr("data/round/data, a link to a folder that it lies in"));
  fs::remove(path("data/round"));
  ::mkfifo(path("data/fifo").c_str(), 0600);
  EXPECT_THAT(problem_of("data"), HasSubstr("hosts.yaml:7: copy[0]: expected a file or folder, "));
  EXPECT_THAT(problem_of("data"), HasSubstr("data/fifo, which is neither"));
}

TEST(CopyEntry, FilesAreTheSameBySizeTimeAndPermissionToRun) {
  const CopyEntry file{"", false, 7, 1'700'000'000'123'456'789, 0644};
  EXPECT_TRUE(is_same(file, file));
  EXPECT_TRUE(is_same(file, {"", false, 7, 1'700'000'000'000'000'000, 0600}));
  EXPECT_FALSE(is_same(file, {"", false, 7, 1'700'000'000'123'456'788, 0644}));
  EXPECT_FALSE(is_same(file, {"", false, 7, 1'700'000'001'000'000'000, 0644}));
  EXPECT_FALSE(is_same(file, {"", false, 8, file.modified, 0644}));
  EXPECT_FALSE(is_same(file, {"", false, 7, file.modified, 0744}));
  EXPECT_FALSE(is_same(file, {"", true, 7, file.modified, 0644}));
}

}  // namespace
}  // namespace muster::local
