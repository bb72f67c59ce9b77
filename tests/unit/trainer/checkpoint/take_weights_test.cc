#include <limits>

#include "gmock/gmock.h"
#include "tests/unit/trainer/checkpoint/checkpoint_testing.h"

namespace muster::checkpoint {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

compute::ParameterLayout layout_of(
    const std::vector<std::pair<std::string, std::vector<int64_t>>>& tensors) {
  std::vector<compute::ParameterTensor> list;
  for (const auto& [name, shape] : tensors) {
    list.emplace_back();
    list.back().name = name;
    list.back().shape = shape;
  }
  return compute::ParameterLayout(std::move(list));
}

// A checkpoint of two servers, which cuts hidden/kernel, and the export of the same weights.
class TakeWeights : public testing::Test {
 protected:
  void SetUp() override {
    Store store(folder_.path() / "checkpoints", 1);
    checkpoint_ = publish(store, test_manifest(1, 1), layout_, values_, 2);
    file_ = export_model(folder_.path(), layout_, values_, Json::object());
  }
  std::string error(const fs::path& from, const compute::ParameterLayout& layout) {
    std::vector<float> values(layout.size());
    return error_of<Invalid>([&] { take_weights("initializeFrom", from, layout, values); });
  }

  TestFolder folder_;
  compute::ParameterLayout layout_ = test_layout();
  std::vector<float> values_ = test_values(layout_);
  fs::path checkpoint_;
  fs::path file_;
};

TEST_F(TakeWeights, FromAFolderOrAnExport) {
  for (const fs::path& from : {checkpoint_, file_}) {
    std::vector<float> values(layout_.size(), 0.0f);
    EXPECT_THAT(take_weights("initializeFrom", from, layout_, values), IsEmpty());
    EXPECT_EQ(values, values_);
  }
}

TEST_F(TakeWeights, LeavesTensorsOfOtherNamesAndTellsThem) {
  const auto layout = layout_of({{"hidden/kernel", {7, 70}}, {"head/kernel", {70, 3}}});
  for (const fs::path& from : {checkpoint_, file_}) {
    std::vector<float> values(layout.size(), -5.0f);
    EXPECT_THAT(take_weights("initializeFrom", from, layout, values), ElementsAre("head/kernel"));
    EXPECT_EQ(values[layout.find("head/kernel").offset], -5.0f);
    EXPECT_EQ(values[layout.find("hidden/kernel").offset + 489],
              values_[layout_.find("hidden/kernel").offset + 489]);
  }
}

TEST_F(TakeWeights, RefusesOtherShapesAndNamesAllOfThem) {
  const auto layout =
      layout_of({{"hidden/kernel", {7, 71}}, {"hidden/bias", {71}}, {"norm/mean", {5}}});
  for (const fs::path& from : {checkpoint_, file_}) {
    EXPECT_THAT(error(from, layout),
                AllOf(StartsWith("initializeFrom: " + from.string() + ": expected"),
                      HasSubstr("hidden/kernel of [7, 70] instead of [7, 71]"),
                      HasSubstr("hidden/bias of [70] instead of [71]")));
  }
}

TEST_F(TakeWeights, RefusesWhatHasNoneOfTheModelsTensors) {
  EXPECT_THAT(error(file_, layout_of({{"other/kernel", {2, 2}}})),
              HasSubstr("expected a tensor of the model, such as other/kernel, found only "
                        "frozen/kernel, hidden/bias, "));
}

TEST_F(TakeWeights, RefusesValuesThatAreNotFinite) {
  const auto layout = layout_of({{"a", {2, 2}}});
  std::string bytes;
  const std::string header = R"({"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})";
  const uint64_t length = header.size();
  bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
  bytes += header;
  const float values[] = {1, 2, std::numeric_limits<float>::infinity(), 4};
  bytes.append(reinterpret_cast<const char*>(values), sizeof values);
  write_all(folder_.path() / "a.safetensors", bytes);
  EXPECT_THAT(
      error(folder_.path() / "a.safetensors", layout),
      HasSubstr("a.safetensors: tensor a: expected finite numbers, found inf as element 2"));
}

TEST_F(TakeWeights, SaysWhatAPlaceIsNot) {
  EXPECT_THAT(error(folder_.path() / "none", layout_),
              AllOf(StartsWith("initializeFrom: "), HasSubstr("none: No such file")));
  EXPECT_THAT(error(folder_.path(), layout_),
              HasSubstr("found a job's directory; name its model/model.safetensors"));
  EXPECT_THAT(error(checkpoint_ / "model-00001-of-00002.safetensors", layout_),
              HasSubstr("is in none of its files"));
  flip_bit(checkpoint_ / "model-00000-of-00002.safetensors", 1400);
  EXPECT_THAT(error(checkpoint_, layout_),
              HasSubstr("model-00000-of-00002.safetensors: damaged: expected crc32c"));
}

}  // namespace
}  // namespace muster::checkpoint
