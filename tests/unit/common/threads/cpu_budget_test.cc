#include "common/threads/cpu_budget.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/unit/common/temporary_folder.h"

namespace muster {
namespace {

class CgroupQuota : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  int quota(const std::string& membership) {
    write("membership", membership);
    return cgroup_cpu_quota((root_ / "membership").string(), root_.string());
  }

  const test::TemporaryFolder folder_;
  const std::filesystem::path root_ = folder_.path();
};

TEST_F(CgroupQuota, TakesTheSmallestUpToTheRootOfVersionTwo) {
  write("cpu.max", "max 100000");
  write("kubepods/cpu.max", "350000 100000");
  write("kubepods/pod/cpu.max", "max 100000");
  EXPECT_EQ(quota("0::/kubepods/pod\n"), 3);
  write("kubepods/pod/cpu.max", "50000 100000");
  EXPECT_EQ(quota("0::/kubepods/pod\n"), 1) << "half a CPU still needs a thread";
}

TEST_F(CgroupQuota, ReadsVersionOne) {
  write("cpu/box/cpu.cfs_quota_us", "200000");
  write("cpu/box/cpu.cfs_period_us", "100000");
  EXPECT_EQ(quota("4:memory:/other\n3:cpu,cpuacct:/box\n"), 2);
  write("cpu/box/cpu.cfs_quota_us", "-1");
  EXPECT_EQ(quota("3:cpu,cpuacct:/box\n"), 0);
}

TEST_F(CgroupQuota, IsNoLimitWhereNothingIsSetOrReadable) {
  EXPECT_EQ(quota("0::/somewhere/else\n"), 0);
  EXPECT_EQ(quota("nonsense\n0:\n"), 0);
  EXPECT_EQ(cgroup_cpu_quota("/nonexistent", "/nonexistent"), 0);
  write("odd/cpu.max", "many few");
  EXPECT_EQ(quota("0::/odd\n"), 0);
}

TEST(CpuBudget, IsAtLeastOne) {
  EXPECT_GE(cpu_budget(), 1);
}

}  // namespace
}  // namespace muster
