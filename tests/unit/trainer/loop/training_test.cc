#include "trainer/loop/training.h"

#include <gtest/gtest.h>

#include "tests/unit/trainer/loop/support.h"

namespace muster::loop {
namespace {

TEST(AssemblyTest, WaitsForItsInputAsLongAsTheDeviceThatWaitsLongest) {
  const auto training = write_training(fresh_folder("devices"), "epochs: 1\ndevices: 3\n");
  const Assembly assembly = assemble(Training::load(training), 1, false, {1, false});
  EXPECT_EQ(assembly.input_wait_seconds(), 0);
  for (const Device& device : assembly.devices()) {
    const double before = assembly.input_wait_seconds();
    while (device.feed.waited_seconds() <= before) device.feed.batch({});
    EXPECT_EQ(assembly.input_wait_seconds(), device.feed.waited_seconds());
  }
}

}  // namespace
}  // namespace muster::loop
