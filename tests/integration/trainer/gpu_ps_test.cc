#include <gmock/gmock.h>

#include "common/exit_code.h"
#include "tests/integration/trainer/job.h"
#include "trainer/compute/cuda/gpus.h"

namespace muster::integration {
namespace {

using testing::HasSubstr;

constexpr char kOnGpu[] = "psDevice: cuda\n";
constexpr char kByGpu[] = "exchange through shared memory of a GPU";

class GpuPsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (compute::cuda::gpu_count() == 0) GTEST_SKIP() << "this machine has no GPU that can be used";
  }
};

Json result_with_ps_on_cpu(const std::string& training) {
  Job job("gpu-ps-on-cpu", training, 1, 1);
  job.start_all();
  job.expect_success();
  return job.result();
}

TEST_F(GpuPsTest, AShardOnTheMembersGpuGivesTheBitsOfOneOnTheCpu) {
  const Json expected = result_with_ps_on_cpu(small_training());
  for (const char* shared_memory : {"1", "0"}) {
    Job job(std::string("gpu-ps-") + shared_memory, small_training(kOnGpu), 1, 1);
    job.environment = {{"MUSTER_SHARED_MEMORY", shared_memory}};
    job.start_all();
    job.expect_success();
    expect_same(job, expected);
    EXPECT_EQ(job.log("chief", 0).find(kByGpu) != std::string::npos, *shared_memory == '1')
        << job.log("chief", 0);
  }
}

TEST_F(GpuPsTest, WhoIsKilledComesBackAndTheBitsAreTheSame) {
  const std::string every = "checkpoint: {everySteps: 150, keep: 50}\n";
  const Json expected = result_with_ps_on_cpu(long_training(every));
  for (const char* role : {"worker", "ps"}) {
    Job job(std::string("gpu-ps-lost-") + role, long_training(every + kOnGpu), 1, 1);
    job.run_losing(role);
    expect_same(job, expected);
    EXPECT_THAT(job.log("chief", 0), HasSubstr(kByGpu));
  }
}

TEST(WithoutGpuTest, EachRoleSaysWhatItMisses) {
  if (compute::cuda::gpu_count() > 0) GTEST_SKIP() << "this machine has a GPU";
  Job with_ps("ps-without-gpu", small_training(kOnGpu), 1, 1);
  with_ps.start("ps", 0);
  EXPECT_EQ(with_ps.at("ps", 0).wait(), kBadConfig);
  EXPECT_THAT(with_ps.log("ps", 0),
              HasSubstr("psDevice: expected 1 GPU that this process can use, found "));
  Job job("without-gpu", small_training("device: cuda\n"), 1, 1, true);
  for (const char* role : {"chief", "worker", "evaluator"}) {
    job.start(role, 0);
    EXPECT_EQ(job.at(role, 0).wait(), kBadConfig) << role;
    EXPECT_THAT(job.log(role, 0), HasSubstr("device: expected ")) << role;
  }
}

}  // namespace
}  // namespace muster::integration
