#include "trainer/checkpoint/start/initial_parameters.h"

#include "gmock/gmock.h"
#include "tests/unit/trainer/checkpoint/checkpoint_testing.h"

namespace muster::checkpoint {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Returns the log of a training that begins with a file of test_layout()'s tensors.
std::string log_with(const std::vector<std::pair<std::string, std::vector<int64_t>>>& tensors) {
  const compute::ParameterLayout layout = layout_of(tensors), theirs = test_layout();
  const TestFolder folder;
  spec::TrainingSpec spec;
  spec.initialize_from = export_model(folder.path(), theirs, test_values(theirs), Json::object());
  spec.initialize_options.skip_mismatched = true;
  std::vector<float> parameters(layout.size());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  fill_initial_parameters(spec, layout, parameters);
  return testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
}

TEST(InitialParameters, WarnIfMostTensorsHaveAnotherShape) {
  EXPECT_THAT(log_with({{"hidden/kernel", {7, 71}}, {"norm/mean", {6}}, {"hidden/bias", {70}}}),
              AllOf(HasSubstr("warning"), HasSubstr("hidden/kernel of [7, 70] instead of [7, 71]"),
                    HasSubstr("taken: hidden/bias")));
  EXPECT_THAT(log_with({{"hidden/kernel", {7, 70}}, {"hidden/bias", {71}}}),
              AllOf(HasSubstr("instead of [71]"), Not(HasSubstr("warning"))));
}

}  // namespace
}  // namespace muster::checkpoint
