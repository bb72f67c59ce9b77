#include "operator/cmd/show/small_model.h"

#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

#include "tests/unit/common/temporary_folder.h"
#include "trainer/checkpoint/files/safetensors.h"

namespace muster::cmd {
namespace {

std::filesystem::path write_model(const std::filesystem::path& path, int64_t weights) {
  std::vector<float> kernel(static_cast<size_t>(weights));
  std::iota(kernel.begin(), kernel.end(), 1.5f);
  const std::vector<float> bias = {10.0f};
  const std::vector<checkpoint::TensorPiece> pieces = {
      {"linear/bias", {1}, 0, 1, bias}, {"linear/kernel", {weights, 1}, 0, weights, kernel}};
  checkpoint::write_safetensors(path, pieces, {{"training", "{}"}});
  return path;
}

TEST(FewParameters, are_those_of_a_model_that_a_person_can_look_at) {
  const test::TemporaryFolder scratch;
  const Json found = few_parameters(write_model(scratch.path() / "small", 2));
  EXPECT_EQ(found, Json({{"linear/bias", {10.0}}, {"linear/kernel", {1.5, 2.5}}}));
  EXPECT_EQ(parameters_text(found), "linear/bias 10, linear/kernel [1.5, 2.5]");
}

TEST(FewParameters, are_null_of_a_model_with_more) {
  const test::TemporaryFolder scratch;
  EXPECT_FALSE(few_parameters(write_model(scratch.path() / "most", kFew - 1)).is_null());
  EXPECT_TRUE(few_parameters(write_model(scratch.path() / "more", kFew)).is_null());
}

TEST(FewParameters, are_null_where_there_is_no_whole_file) {
  const test::TemporaryFolder scratch;
  EXPECT_TRUE(few_parameters(scratch.path() / "none").is_null());
  EXPECT_TRUE(few_parameters(scratch.path()).is_null());
  std::ofstream(scratch.path() / "damaged") << "no safetensors";
  EXPECT_TRUE(few_parameters(scratch.path() / "damaged").is_null());
}

}  // namespace
}  // namespace muster::cmd
