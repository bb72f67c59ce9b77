#include "trainer/folder/owner.h"

#include <gmock/gmock.h>

#include <fstream>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/system/file.h"
#include "tests/unit/common/temporary_folder.h"

namespace muster::folder {
namespace {

using testing::HasSubstr;

Owner owner_named(const std::string& job, const std::string& uid) {
  return {"lab", job, uid, "collective", 2, {{"seed", 1}}};
}

TEST(OwnerTest, IsReadAsItWasWritten) {
  const test::TemporaryFolder root;
  const auto storage = root.path() / "volume" / "lab-one";
  EXPECT_FALSE(read_owner(storage));
  EXPECT_FALSE(is_owned_by(storage, ""));
  EXPECT_NO_THROW(require_no_other_owner(storage, "u1"));
  const Owner one = owner_named("one", "u1");
  std::filesystem::create_directories(storage);
  write_owner(storage, one);
  EXPECT_EQ(read_owner(storage), one);
  EXPECT_EQ(one.name(), "lab/one");
  EXPECT_EQ((Owner{"", "one", "", "", 0, nullptr}).name(), "one");
  EXPECT_TRUE(is_owned_by(storage, "u1"));
  EXPECT_FALSE(is_owned_by(storage, "u2"));
}

TEST(OwnerTest, AnotherOneIsNamed) {
  const test::TemporaryFolder root;
  write_owner(root.path(), owner_named("two", "u2"));
  try {
    require_no_other_owner(root.path(), "u1");
    FAIL() << "the folder is taken for the job's own";
  } catch (const Invalid& error) {
    EXPECT_EQ(error.exit_code(), kProtocol);
    EXPECT_THAT(error.what(), HasSubstr("the job lab/two (uid u2) has taken it"));
  }
}

// Before version 1 of owner.json, each generation had such a file.
TEST(OwnerTest, OfAFolderOfAnEarlierVersionIsThatOfTheNewestGeneration) {
  const test::TemporaryFolder root;
  for (const std::string generation : {"9", "10"}) {
    const auto folder = root.path() / "generations" / generation;
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "owner.json")
        << R"({"jobUid": "u)" << generation << R"(", "job": "one"})";
  }
  const auto owner = read_owner(root.path());
  ASSERT_TRUE(owner);
  EXPECT_EQ(owner->uid, "u10");
  EXPECT_EQ(owner->job, "one");
  EXPECT_TRUE(owner->training.is_null());
  write_owner(root.path(), owner_named("two", "u2"));
  EXPECT_EQ(read_owner(root.path())->uid, "u2");
}

TEST(OwnerTest, ADamagedFileIsNamed) {
  const test::TemporaryFolder root;
  for (const std::string text : {"", "{", "[]", "7", R"({"jobUid": 5, "job": "x"})",
                                 R"({"jobUid": "u", "job": []})", R"({"job": "x"})"}) {
    std::ofstream(root.path() / "owner.json") << text;
    try {
      read_owner(root.path());
      ADD_FAILURE() << text;
    } catch (const Invalid& error) {
      EXPECT_EQ(error.exit_code(), kBadInput) << text;
      EXPECT_THAT(error.what(), HasSubstr((root.path() / "owner.json").string())) << text;
    }
  }
  // The other fields may hold anything.
  std::ofstream(root.path() / "owner.json")
      << R"({"jobUid": "u", "job": "x", "replicas": "many", "exchange": 3, "training": "none"})";
  EXPECT_EQ(read_owner(root.path())->replicas, 0);
}

}  // namespace
}  // namespace muster::folder
