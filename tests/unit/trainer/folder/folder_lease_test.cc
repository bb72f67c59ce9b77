#include "trainer/folder/folder_lease.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/system/file.h"
#include "tests/unit/common/temporary_folder.h"

namespace muster::folder {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

TEST(LeaseTest, WhatALinkInItsPlaceLeadsToIsLeftAlone) {
  const test::TemporaryFolder folder;
  const fs::path other = folder.path() / "other";
  write_file_atomically(other, "somebody else's");
  fs::create_symlink(other, folder.path() / "lease");
  {
    const FolderLease lease(folder.path(), 1ms, [] {});
    EXPECT_FALSE(is_locked(folder.path()));
  }
  EXPECT_EQ(read_file(other), "somebody else's");
}

TEST(LeaseTest, AFifoInItsPlaceKeepsNobodyWaiting) {
  const test::TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder.path() / "lease").c_str(), 0600), 0);
  const FolderLease lease(folder.path(), 1ms, [] {});
  EXPECT_FALSE(is_locked(folder.path()));
  EXPECT_EQ(LeaseWatch(folder.path(), 1ms).look(), Holder::none);
}

TEST(LeaseTest, AFileThatIsTooLongForOneIsNone) {
  const test::TemporaryFolder folder;
  write_file_atomically(folder.path() / "lease", "");
  fs::resize_file(folder.path() / "lease", uint64_t{1} << 40);
  EXPECT_EQ(LeaseWatch(folder.path(), 1ms).look(), Holder::none);
}

}  // namespace
}  // namespace muster::folder
