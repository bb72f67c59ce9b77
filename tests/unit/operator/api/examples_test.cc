#include <gtest/gtest.h>

#include <filesystem>

#include "operator/api/notes.h"
#include "operator/api/validate.h"
#include "trainer/spec/convert.h"

namespace muster::api {
namespace {

std::vector<std::filesystem::path> examples() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(MUSTER_SOURCE_DIR "/examples")) {
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path());
  }
  return paths;
}

TEST(Examples, AllValidateWithoutAProblemForAClusterToo) {
  ASSERT_GE(examples().size(), 5u);
  for (const auto& path : examples()) {
    Document document = Document::load(path);
    for (const Problem& problem : validate_for_cluster(document)) ADD_FAILURE() << problem.text();
    for (const std::string& note : job_notes(document)) ADD_FAILURE() << note;
  }
}

TEST(Examples, DataFilesLieBesideTheManifest) {
  for (const auto& path : examples()) {
    Document document = Document::load(path);
    const TrainingJob job = load_training_job(document);
    if (job.training.is_null()) continue;
    const spec::TrainingSpec training = spec::to_training_spec(job.training);
    const spec::IdxSource* idx = training.data.train.idx();
    if (idx == nullptr) continue;
    EXPECT_TRUE(std::filesystem::exists(path.parent_path() / idx->files.at(0).images)) << path;
    EXPECT_TRUE(std::filesystem::exists(path.parent_path() / idx->files.at(0).labels)) << path;
  }
}

}  // namespace
}  // namespace muster::api
