#include "trainer/loop/batches/device_threads.h"

#include <gtest/gtest.h>

#include <array>
#include <stdexcept>

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
  EXPECT_THROW(threads.each([](int device) {
    if (device == 2) throw DeviceError("lost", true);
    throw Unavailable("another device has failed");
  }),
               DeviceError);
  EXPECT_THROW(threads.each([](int device) {
    if (device == 1) throw Unavailable("no memory");
    if (device == 2) throw std::logic_error("a bug");
  }),
               Unavailable);
  EXPECT_NO_THROW(threads.each([](int) {}));
}

}  // namespace
}  // namespace muster::loop
