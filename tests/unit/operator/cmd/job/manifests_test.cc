#include "operator/cmd/job/manifests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "common/error.h"

namespace muster::cmd {
namespace {

using testing::HasSubstr;

// What load_manifest() says of a file with this name and text; "loaded" if it takes it.
std::string said(const std::string& name, const std::string& text) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / name;
  std::ofstream(file) << text;
  std::vector<std::string> notes;
  try {
    load_manifest(file, {}, notes);
  } catch (const Invalid& error) {
    return error.what();
  }
  return "loaded";
}

TEST(LoadManifest, SaysWhatAFileIsThatIsNoJob) {
  EXPECT_THAT(said("pod.yaml", "apiVersion: v1\nkind: Pod\n"),
              HasSubstr("pod.yaml:2: kind: expected TrainingJob or TFJob, found a Pod (v1)"));
  EXPECT_THAT(said("torch.yaml", "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\n"),
              HasSubstr("found a PyTorchJob (kubeflow.org/v1); write a TrainingJob"));
  EXPECT_THAT(said("train.yaml", "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\n"),
              HasSubstr("found a TrainJob (trainer.kubeflow.org/v1alpha1); write a TrainingJob"));
  EXPECT_THAT(said("train.py", "\"\"\"Trains.\"\"\"\nimport os\nx = {\n"),
              HasSubstr("train.py: expected a manifest, found a script"));
}

TEST(LoadManifest, TakesAJobWhoseVersionOrKindIsMistyped) {
  EXPECT_EQ(said("job.yaml", "apiVersion: muster.dev/v1alpha1\nkind: TrainJob\n"), "loaded");
  EXPECT_EQ(said("version.yaml", "apiVersion: muster.dv/v1alpha1\nkind: TrainingJob\n"), "loaded");
  EXPECT_EQ(said("nothing.yaml", "spec: {}\n"), "loaded");
}

}  // namespace
}  // namespace muster::cmd
