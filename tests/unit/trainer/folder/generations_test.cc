#include "trainer/folder/generations.h"

#include <gmock/gmock.h>

#include <fstream>

#include "common/error.h"
#include "common/exit_code.h"
#include "tests/unit/common/temporary_folder.h"
#include "trainer/folder/owner.h"

namespace muster::folder {
namespace {

using testing::HasSubstr;

TEST(GenerationsTest, OnlyTheNewestMayPublish) {
  const test::TemporaryFolder folder;
  const std::filesystem::path storage = folder.path() / "job";
  EXPECT_EQ(open_generation(storage, 0), 1u);
  EXPECT_NO_THROW(require_newest(storage, 1, ""));
  EXPECT_EQ(open_generation(storage, 6), 7u);
  EXPECT_EQ(newest_generation(storage), 7u);
  // A folder with the name of an impossible generation does not count.
  std::filesystem::create_directory(storage / "generations" / "18446744073709551615");
  EXPECT_EQ(newest_generation(storage), 7u);
  EXPECT_THROW(open_generation(storage, kLastGeneration), Unavailable);
  EXPECT_THROW(require_newest(storage, 1, ""), Unavailable);
}

TEST(GenerationsTest, NothingIsPublishedInAnotherJobsFolder) {
  const test::TemporaryFolder folder;
  const std::filesystem::path& storage = folder.path();
  EXPECT_EQ(open_generation(storage, 0), 1u);
  write_owner(storage, {"", "two", "u2", "", 0, nullptr});
  EXPECT_NO_THROW(require_newest(storage, 1, "u2"));
  try {
    require_newest(storage, 1, "u1");
    FAIL() << "shares a folder with job two";
  } catch (const Invalid& error) {
    EXPECT_EQ(error.exit_code(), kProtocol);
    EXPECT_THAT(error.what(), HasSubstr("the job two (uid u2) has taken it"));
  }
}

// Nobody can see then whether another process has taken the place, so nothing may be published.
TEST(GenerationsTest, AFolderThatCannotBeListedFencesEverybody) {
  const test::TemporaryFolder folder;
  const std::filesystem::path& storage = folder.path();
  EXPECT_EQ(newest_generation(storage), 0u);
  std::ofstream(storage / "generations") << "a file in the way";
  EXPECT_THROW(newest_generation(storage), Unavailable);
  EXPECT_THROW(require_newest(storage, 5, ""), Unavailable);
}

}  // namespace
}  // namespace muster::folder
