#include "trainer/loop/training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "common/exit_code.h"
#include "tests/unit/trainer/loop/support.h"

namespace muster::loop {
namespace {

using ::testing::HasSubstr;

TEST(AssemblyTest, WaitsForItsInputAsLongAsTheDeviceThatWaitsLongest) {
  const auto training = write_training(fresh_folder("devices"), "epochs: 1\ndevices: 3\n");
  const Assembly assembly = assemble(Training::load(training), 1, false, {1, false});
  EXPECT_EQ(assembly.input_wait_seconds(), 0);
  for (const FedEngine& device : assembly.devices()) {
    const double before = assembly.input_wait_seconds();
    while (device.feed.waited_seconds() <= before) device.feed.batch({});
    EXPECT_EQ(assembly.input_wait_seconds(), device.feed.waited_seconds());
  }
}

TEST(TrainingTest, RefusesByNameWhatThisBuildCannotDo) {
  const auto refusal = [](const std::string& field) -> std::string {
    const auto file = write_training(fresh_folder("refused"), "epochs: 1\n" + field + "\n");
    try {
      Training::load(file);
    } catch (const Invalid& error) {
      EXPECT_EQ(error.exit_code(), kBadConfig);
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal("device: cuda"),
              HasSubstr("device: expected auto or cpu, found \"cuda\" (a string), which is not "
                        "available in this build"));
}

}  // namespace
}  // namespace muster::loop
