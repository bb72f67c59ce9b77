#include "trainer/checkpoint/store/trial.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/system/file.h"
#include "tests/unit/common/temporary_folder.h"

namespace muster::checkpoint {
namespace {

namespace fs = std::filesystem;

TEST(TryStorage, LeavesNothingBehind) {
  const test::TemporaryFolder folder;
  try_storage(folder.path() / "checkpoints");
  EXPECT_TRUE(fs::is_empty(folder.path()));
  fs::create_directories(folder.path() / "checkpoints");
  write_file_atomically(folder.path() / "checkpoints/checkpoint", "known");
  try_storage(folder.path() / "checkpoints");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path() / "checkpoints"), {}), 1);
}

TEST(TryStorage, RefusesAPlaceThatNoRestartMends) {
  const test::TemporaryFolder folder;
  write_file_atomically(folder.path() / "file", "where the folder should be");
  try {
    try_storage(folder.path() / "file" / "checkpoints");
    FAIL();
  } catch (const Invalid& error) {
    EXPECT_EQ(error.exit_code(), kBadConfig);
    EXPECT_THAT(error.what(), testing::HasSubstr((folder.path() / "file").string()));
  }
}

}  // namespace
}  // namespace muster::checkpoint
