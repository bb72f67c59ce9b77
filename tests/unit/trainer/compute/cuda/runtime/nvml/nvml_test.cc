// The library is a fake (fake_nvml.cc): MUSTER_FAKE_NVML is its file.
#include "trainer/compute/cuda/runtime/nvml.h"

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::compute::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Nvml, TellsWhatEachGpuTells) {
  const Nvml nvml(MUSTER_FAKE_NVML);
  EXPECT_EQ(nvml.use_of("0000:3b:00.0"), (GpuUse{0.93, 2000, 80000, 412.5, 1, 61, 1.98e9, 2, 79}));
  EXPECT_EQ(nvml.use_of("0000:5e:00.0"), (GpuUse{.memory_used = 3000, .memory = 80000}));
  EXPECT_THAT(
      [&] { nvml.use_of("0000:86:00.0"); },
      ThrowsMessage<Unavailable>(AllOf(HasSubstr("0000:86:00.0"), HasSubstr("GPU is lost"))));
}

TEST(Nvml, CountsTheErrorsThatTheDriverReportsOnce) {
  const Nvml nvml(MUSTER_FAKE_NVML);
  for (int look = 0; look < 2; ++look) {
    const GpuUse use = nvml.use_of("0000:3b:00.0");
    EXPECT_EQ(use.xid_errors, 2u) << look;
    EXPECT_EQ(use.last_xid, 79u) << look;
  }
}

TEST(Nvml, NamesWhatIsMissing) {
  const Nvml nvml(MUSTER_FAKE_NVML);
  EXPECT_THAT([&] { nvml.use_of("0000:99:00.0"); },
              ThrowsMessage<Unavailable>(HasSubstr("0000:99:00.0")));
  EXPECT_THAT([] { const Nvml none("libno-nvml.so.1"); },
              ThrowsMessage<Unavailable>(HasSubstr("libno-nvml.so.1")));
}

}  // namespace
}  // namespace muster::compute::cuda
