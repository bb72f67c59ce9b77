#include <dlfcn.h>
#include <gmock/gmock.h>

#include "tests/integration/trainer/job.h"
#include "trainer/compute/cuda/gpus.h"

namespace muster::integration {
namespace {

using testing::HasSubstr;

// NCCL takes a GPU for several processes where it is told to, from 2.30 on.
const Job::Environment kSharedGpu = {{"NCCL_MULTI_RANK_GPU_ENABLE", "1"}};
constexpr int kLeastVersion = 23000;
constexpr char kLinked[] = R"("linkedGpus":true)";

int nccl_version() {
  void* library = dlopen("libnccl.so.2", RTLD_LAZY);
  void* function = library ? dlsym(library, "ncclGetVersion") : nullptr;
  int version = 0;
  if (function) reinterpret_cast<int (*)(int*)>(function)(&version);
  return version;
}

class GpuNcclTest : public testing::Test {
 protected:
  void SetUp() override {
    if (compute::cuda::gpu_count() == 0) GTEST_SKIP() << "this machine has no GPU that can be used";
    if (nccl_version() < kLeastVersion)
      GTEST_SKIP() << "expected NCCL 2.30 for several processes on a GPU, found version "
                   << nccl_version();
  }
};

Json result_by_host(const std::string& training, int workers) {
  Job job("gpu-nccl-host", training, 0, workers);
  job.start_all();
  job.expect_success();
  return job.result();
}

TEST_F(GpuNcclTest, HasTheBitsOfAGroupThatUsesTheHostsMemory) {
  for (const int workers : {1, 2}) {
    const Json expected = result_by_host(small_training(), workers);
    for (const char* shared_memory : {"1", "0"}) {
      Job job("gpu-nccl", small_training("synchronization: {nccl: always}\n"), 0, workers);
      job.environment = kSharedGpu;
      job.environment["MUSTER_SHARED_MEMORY"] = shared_memory;
      job.start_all();
      job.expect_success();
      expect_same(job, expected);
      EXPECT_THAT(job.log("chief", 0), HasSubstr(kLinked));
    }
  }
}

TEST_F(GpuNcclTest, WhoIsKilledComesBackAndTheBitsAreTheSame) {
  const std::string every = "checkpoint: {everySteps: 150, keep: 50}\n";
  const Json expected = result_by_host(long_training(every), 2);
  for (const char* role : {"worker", "chief"}) {
    Job job(std::string("gpu-nccl-lost-") + role, long_training(every), 0, 2);
    job.environment = kSharedGpu;
    job.run_losing(role);
    expect_same(job, expected);
    EXPECT_THAT(job.log("chief", 0), HasSubstr(kLinked));
  }
}

}  // namespace
}  // namespace muster::integration
