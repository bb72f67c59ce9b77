#include "trainer/supervise/oom_kills.h"

#include <gtest/gtest.h>

#include "common/system/file.h"
#include "tests/unit/common/temporary_folder.h"

namespace muster::supervise {
namespace {

TEST(OomKills, AreReadFromEitherKindOfCgroup) {
  const test::TemporaryFolder two;
  write_file_atomically(two.path() / "memory.events",
                        "low 0\nhigh 3\nmax 17\noom 2\noom_kill 2\noom_group_kill 0\n");
  EXPECT_EQ(oom_kills(two.path()), 2u);
  const test::TemporaryFolder one;
  std::filesystem::create_directory(one.path() / "memory");
  write_file_atomically(one.path() / "memory/memory.oom_control",
                        "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
  EXPECT_EQ(oom_kills(one.path()), 5u);
}

TEST(OomKills, WhereNothingCanBeReadAreNone) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(oom_kills(folder.path()), 0u);
  write_file_atomically(folder.path() / "memory.events", "oom_kill many\n");
  EXPECT_EQ(oom_kills(folder.path()), 0u);
}

}  // namespace
}  // namespace muster::supervise
