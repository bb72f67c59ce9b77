#include "trainer/loop/training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "common/exit_code.h"
#include "tests/unit/trainer/data/images/pictures.h"
#include "tests/unit/trainer/loop/support.h"
#include "trainer/compute/cuda/gpus.h"

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

TEST(TrainingTest, CountsAllDevicesThatItCanUse) {
  const auto devices_of = [](const std::string& device) {
    const auto file = write_training(fresh_folder("all-devices"),
                                     "epochs: 1\ndevices: auto\ndevice: " + device + "\n");
    return Training::load(file).spec.devices;
  };
  EXPECT_EQ(devices_of("cpu"), 1);
  EXPECT_EQ(devices_of("auto"), std::max(1, compute::cuda::gpu_count()));
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
              HasSubstr(compute::cuda::kInThisBuild
                            ? "accepted"  // whether there is a GPU is seen later
                            : "device: expected auto or cpu, found \"cuda\" (a string), which is "
                              "not available in this build"));
}

TEST(TrainingTest, TakesTheClassesOfAModelFromTheDataIfTheyAreLeftOpen) {
  const std::filesystem::path folder = fresh_folder("open-classes");
  const std::filesystem::path file = folder / "training.yaml";
  write_file_atomically(file,
                        "model: {name: mobilenet-v1, depthMultiplier: 0.25}\nepochs: 1\n"
                        "data:\n  train:\n    imageFolder: {path: " +
                            (folder / "images").string() + ", imageSize: [32, 32]}\n");
  try {
    Training::load(file);
    FAIL() << "there are no images";
  } catch (const Invalid& error) {
    EXPECT_EQ(error.exit_code(), kBadInput);
    EXPECT_THAT(error.what(), HasSubstr("training.yaml:4: data.train: expected data that say how "
                                        "many classes the model has, found " +
                                        (folder / "images").string() + ": expected a folder"));
  }
  for (const char* name : {"a/1.png", "b/1.png", "c/1.png"})
    data::put(folder / "images" / name, data::png(1));
  const Training training = Training::load(file);
  EXPECT_EQ(training.spec.model.label_count, 3);
  EXPECT_EQ(training.json["model"]["classes"], 3);
  // A checkpoint holds the number, so that the model can be read without its data.
  EXPECT_EQ(Training::from_json(training.json, "checkpoint").spec.model.label_count, 3);
}

}  // namespace
}  // namespace muster::loop
