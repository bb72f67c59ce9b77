#include "trainer/loop/batches/device_threads.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "common/error.h"

namespace muster::loop {
namespace {

TEST(DeviceThreads, RunTheWorkOfEachDevice) {
  DeviceThreads threads(3, /*exclusive=*/false);
  std::array<int, 3> done{};
  threads.each([&](int device) { done[static_cast<size_t>(device)] += device + 1; });
  EXPECT_EQ(done, (std::array{1, 2, 3}));
}

TEST(DeviceThreads, TellOfTheFailureOfADeviceBeforeThoseThatFollowFromIt) {
  DeviceThreads threads(3, /*exclusive=*/false);
  std::atomic<int> gave_up{0};
  EXPECT_THROW(threads.each([&](int device) {
    if (device == 1) {
      while (gave_up < 2) std::this_thread::yield();
      throw DeviceError("lost", true);
    }
    ++gave_up;
    throw Unavailable("another device has failed");
  }),
               DeviceError);
  EXPECT_NO_THROW(threads.each([](int) {}));
}

TEST(DeviceThreads, TellOfWhatFailedFirst) {
  DeviceThreads threads(3, /*exclusive=*/false);
  std::atomic<bool> failed{false};
  try {
    threads.each([&](int device) {
      if (device == 2) {
        failed = true;
        throw std::logic_error("a bug");
      }
      while (!failed) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      throw Unavailable("another device has failed");
    });
    FAIL() << "nothing was thrown";
  } catch (const std::logic_error&) {
  }
}

}  // namespace
}  // namespace muster::loop
