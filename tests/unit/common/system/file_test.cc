#include "common/system/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "common/digest.h"
#include "common/error.h"
#include "common/exit_code.h"
#include "tests/unit/common/temporary_folder.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Files : public ::testing::Test {
 protected:
  size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }
  const test::TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
};

TEST_F(Files, ReadsBackWhatWasWritten) {
  const std::string bytes("a\0b\n", 4);
  write_file_atomically(folder_ / "x", bytes);
  EXPECT_EQ(read_file(folder_ / "x"), bytes);
  write_file_atomically(folder_ / "x", "");
  EXPECT_EQ(read_file(folder_ / "x"), "");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(Files, AWriteThatFailsNamesThePathAndLeavesNothing) {
  fs::create_directory(folder_ / "taken");
  std::ofstream(folder_ / "taken" / "file") << "x";
  try {
    write_file_atomically(folder_ / "taken", "new");
    FAIL();
  } catch (const WriteError& error) {
    EXPECT_THAT(error.what(), HasSubstr((folder_ / "taken").string()));
  }
  EXPECT_EQ(entries(), 1u);
  EXPECT_THROW(write_file_atomically(folder_ / "none" / "x", "y"), WriteError);
}

// Lets this process write no more than `bytes` to a file: what a full disk looks like from inside.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }

 private:
  sighandler_t handler_;
  rlimit before_{};
};

TEST_F(Files, AWriteCutShortLeavesTheOldFileWhole) {
  write_file_atomically(folder_ / "x", "old");
  {
    const FileSizeLimit limit(1000);
    EXPECT_THROW(write_file_atomically(folder_ / "x", std::string(5000, 'n')), WriteError);
  }
  EXPECT_EQ(read_file(folder_ / "x"), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(Files, ReadingRefusesWhatIsNoFile) {
  EXPECT_THROW(read_file(folder_), Invalid);
  EXPECT_THROW(read_file(folder_ / "none"), Invalid);
  ASSERT_EQ(mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  EXPECT_THROW(read_file(folder_ / "fifo"), Invalid);
}

TEST_F(Files, ThatAreLongerThanAskedForAreNotRead) {
  const fs::path path = folder_ / "long";
  write_file_atomically(path, "12345");
  EXPECT_EQ(read_file(path, 5), "12345");
  EXPECT_THAT(
      [&] { read_file(path, 4); },
      ::testing::ThrowsMessage<Invalid>(HasSubstr("long: expected at most 4 bytes, found 5")));
  fs::resize_file(path, uint64_t{1} << 40);  // no memory has room for it
  EXPECT_THROW(read_file(path, kLongestText), Invalid);
}

// A link to itself, for a root that no permission keeps out.
TEST_F(Files, AreNotTakenForAbsentWhereTheyCannotBeLookedAt) {
  std::ofstream(folder_ / "x") << "x";
  EXPECT_TRUE(is_there(folder_ / "x"));
  EXPECT_FALSE(is_there(folder_ / "none"));
  EXPECT_FALSE(is_there(folder_ / "x" / "none"));
  fs::create_symlink("loop", folder_ / "loop");
  try {
    is_there(folder_ / "loop" / "file");
    ADD_FAILURE();
  } catch (const Unavailable& error) {
    EXPECT_THAT(error.what(), HasSubstr("loop/file: "));
  }
}

TEST_F(Files, CreatesDirectoriesOnceAndAgain) {
  muster::create_directories(folder_ / "a" / "b");
  muster::create_directories(folder_ / "a" / "b");
  EXPECT_TRUE(fs::is_directory(folder_ / "a" / "b"));
  write_file_atomically(folder_ / "f", "");
  EXPECT_THROW(muster::create_directories(folder_ / "f"), WriteError);
  EXPECT_THROW(muster::create_directories(folder_ / "f" / "g"), WriteError);
}

TEST_F(Files, NamesOfAFolderAreListed) {
  EXPECT_TRUE(names_in(folder_).empty());
  EXPECT_TRUE(names_in(folder_ / "none" / "none").empty());
  write_file_atomically(folder_ / "a", "");
  muster::create_directories(folder_ / "b");
  EXPECT_THAT(names_in(folder_), testing::UnorderedElementsAre("a", "b"));
  try {
    names_in(folder_ / "a");
    FAIL();
  } catch (const Unavailable& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot list " + (folder_ / "a").string()));
  }
}

// tests/chaos/late_test.cc tests its purpose, on a file system that answers late.
TEST_F(Files, LookingAnewChangesNothing) {
  for (const fs::path& path : {folder_, folder_ / "none", folder_ / "none" / "none", fs::path()})
    look_anew(path);
  EXPECT_EQ(entries(), 0u);
  EXPECT_FALSE(is_there_anew(folder_ / "x"));
  write_file_atomically(folder_ / "x", "");
  EXPECT_TRUE(is_there_anew(folder_ / "x"));
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(Digests, MatchTheirTestVectors) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c({}), 0u);
  EXPECT_EQ(crc32c(bytes_of(std::string(32, '\0'))), 0x8a9136aau);  // RFC 3720, B.4
  Sha256 sha;
  EXPECT_EQ(sha.finish(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  sha.update(bytes_of("abc"));
  EXPECT_EQ(sha.finish(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Digests, DoNotDependOnThePieces) {
  const std::string text = "the quick brown fox jumps over the lazy dog, 1,2,3";
  Sha256 whole, pieces;
  whole.update(bytes_of(text));
  const std::string expected = whole.finish();
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const auto first = bytes_of(std::string_view(text).substr(0, cut));
    const auto rest = bytes_of(std::string_view(text).substr(cut));
    EXPECT_EQ(crc32c(rest, crc32c(first)), crc32c(bytes_of(text)));
    pieces.update(first);
    pieces.update(rest);
    EXPECT_EQ(pieces.finish(), expected);
  }
}

TEST(ExitCodes, ArePermanentOrNotAndHaveWords) {
  for (const int code : {64, 65, 72, 76, 78, 90}) EXPECT_TRUE(is_permanent(code)) << code;
  for (const int code : {0, 1, 69, 70, 73, 137, 143, 255}) EXPECT_FALSE(is_permanent(code)) << code;
  EXPECT_STREQ(describe_exit_code(137), "terminated (SIGKILL)");
  EXPECT_STREQ(describe_exit_code(90), "the loss is not finite");
  EXPECT_STREQ(describe_exit_code(42), "failed");
  EXPECT_STREQ(describe_exit_code(-5), "failed");
  EXPECT_STREQ(describe_exit_code(191), "terminated by a signal");
}

}  // namespace
}  // namespace muster
