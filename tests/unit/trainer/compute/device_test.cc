#include "trainer/compute/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "common/exit_code.h"
#include "tests/unit/trainer/compute/support.h"
#include "trainer/compute/cuda/gpus.h"

namespace muster::compute {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Property;
using ::testing::StartsWith;
using ::testing::Throws;

TEST(Devices, AreOfTheKindThatIsNamed) {
  EXPECT_THAT(choose_devices("cpu", 2),
              ElementsAre(Device{DeviceKind::cpu, 0}, Device{DeviceKind::cpu, 1}));
  EXPECT_THAT(
      [] { choose_devices("tpu", 1); },
      Throws<Invalid>(AllOf(Property(&Invalid::what, StartsWith("device: expected auto or cpu")),
                            Property(&Invalid::exit_code, kBadConfig))));
}

TEST(Devices, AreGpusByThemselvesWhereThereAreAny) {
  const DeviceKind kind = cuda::gpu_count() > 0 ? DeviceKind::cuda : DeviceKind::cpu;
  EXPECT_THAT(choose_devices("auto", 1), ElementsAre(Device{kind, 0}));
}

TEST(Devices, ShareGpusOfWhichThereAreTooFewUnlessTheyAreNamed) {
  const int gpus = cuda::gpu_count();
  if (gpus == 0) GTEST_SKIP() << testing::kNoGpu;
  const auto devices = choose_devices("auto", gpus + 1);
  ASSERT_EQ(devices.size(), static_cast<size_t>(gpus) + 1);
  EXPECT_EQ(devices.back(), devices.front());
}

TEST(Devices, AreRefusedWhereThereAreTooFewGpus) {
  const int wanted = cuda::gpu_count() + 1;
  if (!cuda::kInThisBuild) {
    EXPECT_THAT(device_choices(), Not(Contains("cuda")));
  }
  const std::string found =
      cuda::kInThisBuild ? std::to_string(wanted - 1) : "a build without CUDA";
  for (const char* field : {"device", "psDevice"}) {
    EXPECT_THAT(
        [&] { choose_devices("cuda", wanted, field); },
        Throws<Invalid>(
            AllOf(Property(&Invalid::what, StartsWith(std::string(field) + ": expected ")),
                  Property(&Invalid::what, HasSubstr("that this process can use, found " + found)),
                  Property(&Invalid::exit_code, kBadConfig))));
  }
}

}  // namespace
}  // namespace muster::compute
