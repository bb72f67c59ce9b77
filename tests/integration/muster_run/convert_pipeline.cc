#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/exit_code.h"
#include "tests/integration/muster_run/harness.h"

// `muster convert`, and what `muster validate` says of its manifests.

namespace muster::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

std::string fixture(const std::string& name) {
  return (fs::path(MUSTER_SOURCE_DIR) / "tests/fixtures/pipelines" / name).string();
}

TEST(Convert, writes_a_manifest_that_is_valid_and_says_what_is_left_to_do) {
  ScriptJob job("");
  auto convert =
      job.muster({"convert", fixture("ssd_mobilenet_v1_quantized_300x300_coco14_sync.config"),
                  "--output", "converted.yaml"});
  EXPECT_EQ(convert->wait(), kSuccess) << convert->output();
  EXPECT_THAT(convert->output(),
              AllOf(HasSubstr("to be set: spec.training.data.train.tfRecord.files: PATH_TO_BE_"),
                    HasSubstr("not carried over: "), HasSubstr(": graph_rewriter: Muster has no")));
  EXPECT_THAT(read_text(job.folder() / "converted.yaml"), HasSubstr("# Not carried over:"));
  auto validate = job.muster({"validate", "converted.yaml"});
  EXPECT_EQ(validate->wait(), kSuccess) << validate->output();
  EXPECT_THAT(validate->output(), AllOf(HasSubstr("converted.yaml: valid"),
                                        HasSubstr("tfRecord: its files cannot be read here")));
}

TEST(Convert, does_not_write_over_what_it_reads) {
  ScriptJob job("");
  const auto pipeline = job.folder() / "pipeline.config";
  fs::copy_file(fixture("ssd_mobilenet_v1_pets.config"), pipeline);
  const std::string before = read_text(pipeline);
  auto convert = job.muster({"convert", "pipeline.config", "--output", "./pipeline.config"});
  EXPECT_EQ(convert->wait(), kUsage);
  EXPECT_THAT(convert->output(), HasSubstr("expected another file than those to convert"));
  EXPECT_EQ(read_text(pipeline), before);
}

TEST(Convert, prints_the_manifest_where_no_file_is_named) {
  ScriptJob job("");
  auto convert = job.muster({"convert", fixture("ssd_mobilenet_v1_pets.config")});
  EXPECT_EQ(convert->wait(), kSuccess);
  EXPECT_THAT(convert->output(),
              HasSubstr("kind: TrainingJob\nmetadata:\n  name: ssd-mobilenet-v1-pets"));
}

TEST(Convert, refuses_other_models_and_files_that_are_not_there) {
  ScriptJob job("");
  auto fpn = job.muster({"convert", fixture("ssd_mobilenet_v1_fpn.config")});
  EXPECT_EQ(fpn->wait(), kBadInput);
  EXPECT_THAT(fpn->output(), HasSubstr("found \"ssd_mobilenet_v1_fpn\""));
  auto none = job.muster({"convert", "none.config"});
  EXPECT_EQ(none->wait(), kBadInput);
  EXPECT_THAT(none->output(), HasSubstr("none.config: No such file"));
}

}  // namespace
}  // namespace muster::test
