#include "trainer/records/record_files.h"

#include <thread>

#include "gmock/gmock.h"
#include "tests/unit/trainer/records/fixture.h"
#include "trainer/records/framing.h"

namespace muster::records {
namespace {

// Files with one record each, which is the file's number.
std::vector<std::filesystem::path> files(const TestFolder& folder, size_t count) {
  std::vector<std::filesystem::path> paths;
  for (size_t i = 0; i < count; ++i)
    paths.push_back(folder.write(std::to_string(i), frame_record(std::to_string(i))));
  return paths;
}

std::string read(const RecordFiles& files, size_t file) {
  std::string bytes;
  files.open(file)->read({0, std::to_string(file).size()}, 0, bytes);
  return bytes;
}

// How many files of the folder this process has open.
size_t open_in(const std::filesystem::path& folder) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    count += std::filesystem::read_symlink(entry.path(), gone).parent_path() == folder ? 1 : 0;
  }
  return count;
}

TEST(RecordFiles, StayOpenUpToALimit) {
  const TestFolder folder;
  const size_t most = RecordFiles::kMostOpen;
  const RecordFiles opened(files(folder, most + 20));
  EXPECT_EQ(open_in(folder.path()), 0u);
  for (size_t file = 0; file < most; ++file) read(opened, file);
  EXPECT_EQ(open_in(folder.path()), most);
  const auto first = opened.open(0);
  for (size_t file = 0; file < most; ++file) EXPECT_EQ(read(opened, file), std::to_string(file));
  EXPECT_EQ(opened.open(0), first);  // it was not opened again
  for (size_t file = most; file < most + 20; ++file) {
    EXPECT_EQ(opened.open(0), first);  // a file that is used stays open
    EXPECT_EQ(read(opened, file), std::to_string(file));
    EXPECT_EQ(open_in(folder.path()), most);
  }
  EXPECT_EQ(read(opened, 5), "5");
}

// The caller's file stays open although others have taken its place.
TEST(RecordFiles, AreClosedWhenNobodyReadsThem) {
  const TestFolder folder;
  const size_t most = RecordFiles::kMostOpen;
  const RecordFiles opened(files(folder, 2 * most));
  auto first = opened.open(0);
  for (size_t file = 1; file < 2 * most; ++file) read(opened, file);
  EXPECT_EQ(open_in(folder.path()), most + 1);
  std::string bytes;
  first->read({0, 1}, 0, bytes);
  EXPECT_EQ(bytes, "0");
  first.reset();
  EXPECT_EQ(open_in(folder.path()), most);
}

TEST(RecordFiles, AreReadByManyThreads) {
  const TestFolder folder;
  const size_t count = RecordFiles::kMostOpen + 5;
  const RecordFiles opened(files(folder, count));
  std::vector<std::thread> threads;
  for (size_t first = 0; first < 4; ++first)
    threads.emplace_back([&, first] {
      for (size_t i = 0; i < 2000; ++i) {
        const size_t file = (first * 17 + i * 7) % count;
        EXPECT_EQ(read(opened, file), std::to_string(file));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(open_in(folder.path()), RecordFiles::kMostOpen);
}

TEST(RecordFiles, NameAFileThatIsMissing) {
  const RecordFiles missing({"/nowhere/train"});
  EXPECT_EQ(missing.path(0), "/nowhere/train");
  EXPECT_THAT([&] { missing.open(0); },
              testing::ThrowsMessage<Invalid>(testing::HasSubstr("cannot open /nowhere/train")));
}

}  // namespace
}  // namespace muster::records
