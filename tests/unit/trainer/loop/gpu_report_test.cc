#include "trainer/loop/gpu_report.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "common/error.h"
#include "common/net/http_get.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/common/net/listener.h"

namespace muster::loop {
namespace {

using compute::cuda::GpuUse;
using compute::cuda::GpuWatch;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

TEST(GpuReport, ShowsWhatIsKnownAndNoOldNumbers) {
  const std::string address = free_address();
  metrics::Reporter reporter(address, "worker", 1);
  const auto lost = std::make_shared<std::atomic<bool>>(false);
  const auto watch = std::make_shared<const GpuWatch>(
      [lost]() -> std::vector<GpuUse> {
        if (*lost) throw Unavailable("lost");
        return {{0.5, 2000, 80000, 412.5, 0, 61, 1.98e9, 2, 79}, {.memory = 70000}};
      },
      GpuWatch::Times{.period = milliseconds(1)});
  report_gpus(reporter, watch);
  const auto wait_until = [&](bool seen) {
    while (watch->seen().empty() == seen) std::this_thread::sleep_for(milliseconds(1));
  };
  wait_until(true);
  const auto progress = [&] {
    return Json::parse(http_get(address, "/progress", std::chrono::seconds(30)));
  };
  const Json first = {{"utilization", 0.5},   {"memoryUsed", 2000}, {"memory", 80000},
                      {"watts", 412.5},       {"memoryErrors", 0},  {"celsius", 61.0},
                      {"clockHertz", 1.98e9}, {"xidErrors", 2},     {"lastXid", 79}};
  const Json second = {{"memory", 70000}};
  EXPECT_EQ(progress()["gpus"], Json::array({first, second}));
  EXPECT_THAT(reporter.metrics_text(),
              AllOf(ContainsRegex("muster_trainer_gpu_utilization\\{.*gpu=\"0\"\\} 0.5\n"),
                    ContainsRegex("muster_trainer_gpu_memory_used_bytes\\{.*gpu=\"0\"\\} 2000\n"),
                    ContainsRegex("muster_trainer_gpu_memory_bytes\\{.*gpu=\"1\"\\} 70000\n"),
                    ContainsRegex("muster_trainer_gpu_power_watts\\{.*gpu=\"0\"\\} 412.5\n"),
                    ContainsRegex("muster_trainer_gpu_power_watts\\{.*gpu=\"1\"\\} Nan\n"),
                    ContainsRegex("muster_trainer_gpu_memory_errors\\{.*gpu=\"0\"\\} 0\n"),
                    ContainsRegex("muster_trainer_gpu_temperature_celsius\\{.*gpu=\"0\"\\} 61\n"),
                    ContainsRegex("muster_trainer_gpu_clock_hertz\\{.*gpu=\"0\"\\} 1980000000\n"),
                    ContainsRegex("muster_trainer_gpu_xid_errors\\{.*gpu=\"0\"\\} 2\n"),
                    ContainsRegex("muster_trainer_gpu_last_xid\\{.*gpu=\"0\"\\} 79\n")));
  *lost = true;
  wait_until(false);
  EXPECT_FALSE(progress().contains("gpus"));
  EXPECT_THAT(reporter.metrics_text(),
              AllOf(ContainsRegex("muster_trainer_gpu_utilization\\{.*gpu=\"0\"\\} Nan\n"),
                    Not(ContainsRegex("muster_trainer_gpu_utilization\\{.*gpu=\"0\"\\} 0.5"))));
}

TEST(GpuReport, ShowsNothingOfCpus) {
  metrics::Reporter reporter("", "worker", 1);
  report_gpus(reporter, std::vector<compute::Device>{{compute::DeviceKind::cpu, 0}});
  EXPECT_THAT(reporter.metrics_text(), Not(HasSubstr("gpu")));
}

}  // namespace
}  // namespace muster::loop
