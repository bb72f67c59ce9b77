#include "trainer/checkpoint/store/restore.h"

#include <algorithm>
#include <iterator>

#include "common/system/file.h"
#include "gmock/gmock.h"
#include "tests/unit/trainer/checkpoint/checkpoint_testing.h"
#include "trainer/checkpoint/start/take_weights.h"

namespace muster::checkpoint {
namespace {

using testing::HasSubstr;

compute::ParameterTensor tensor(std::string name, std::vector<int64_t> shape) {
  compute::ParameterTensor t;
  t.name = std::move(name);
  t.shape = std::move(shape);
  return t;
}

TEST(Pieces, LeaveOutPaddingAndTiedTensors) {
  const auto layout = test_layout();
  const auto values = test_values(layout);
  size_t floats = 0;
  for (const TensorPiece& piece : pieces_of(layout, {0, layout.size()}, values, "")) {
    floats += piece.values.size();
    EXPECT_TRUE(piece.whole()) << piece.name;
  }
  EXPECT_EQ(floats, 3u * 4 * 16 + 7 * 70 + 70 + 1 + 15 + 5);
}

TEST(Pieces, RefuseACutInsideARow) {
  const auto layout = test_layout();
  const auto& kernel = layout.find("hidden/kernel");
  const std::vector<float> values(75);
  EXPECT_THAT(error_of<Invalid>([&] {
                pieces_of(layout, {kernel.offset, kernel.offset + 75}, values, "");
              }),
              HasSubstr("hidden/kernel inside a row of 70"));
  EXPECT_THROW(pieces_of(layout, {0, 10}, values, ""), Invalid);
}

// Any number of shards restores a checkpoint of any other: `first` servers write it, `second`
// servers read it.
class Repartition : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(Repartition, RestoresEveryRange) {
  const TestFolder folder;
  const auto layout = test_layout();
  const auto values = test_values(layout);
  Store store(folder.path(), 1);
  publish(store, test_manifest(1, 1), layout, values, GetParam().first);
  const auto found = store.newest();
  ASSERT_TRUE(found.has_value());
  for (const char* prefix : {"", "m/"}) {
    std::vector<float> restored(layout.size(), -1.0f);
    size_t at = 0;
    for (const compute::Range range : layout.partition(GetParam().second)) {
      ASSERT_EQ(range.begin, at);
      at = range.end;
      load(*found, layout, range, std::span(restored).subspan(range.begin, range.size()), prefix);
    }
    EXPECT_EQ(restored, values);
  }
}

INSTANTIATE_TEST_SUITE_P(Table, Repartition,
                         testing::Values(std::pair(1, 1), std::pair(1, 3), std::pair(3, 1),
                                         std::pair(2, 3), std::pair(5, 2), std::pair(12, 5),
                                         std::pair(1, 12)));

class RestoreTest : public testing::Test {
 protected:
  void SetUp() override {
    publish(store_, test_manifest(1, 1), layout_, values_, 2);
    found_ = *store_.newest();
  }
  std::string load_error(const compute::ParameterLayout& layout, const std::string& prefix = "") {
    std::vector<float> values(layout.size(), 5.0f);
    const std::string message = error_of<Invalid>([&] {
      load(found_, layout, {0, layout.size()}, values, prefix);
    });
    EXPECT_EQ(values, std::vector<float>(layout.size(), 5.0f));  // untouched
    return message;
  }

  TestFolder folder_;
  compute::ParameterLayout layout_ = test_layout();
  std::vector<float> values_ = test_values(layout_);
  Store store_{folder_.path(), 1};
  Store::Found found_;
};

TEST_F(RestoreTest, TheWeightsToEvaluateAreTheAverageOfThoseThatAreTrained) {
  std::vector<float> weights(layout_.size());
  load_weights(found_, layout_, weights);
  EXPECT_EQ(weights, values_) << "without an average";
  const std::vector<float> average = test_values(layout_, 50);
  publish(store_, test_manifest(2, 1), layout_, values_, 3, {"average", average});
  load_weights(*store_.newest(), layout_, weights);
  const size_t end = layout_.segment(compute::Segment::trainable).end;
  ASSERT_LT(end, layout_.size());
  for (size_t i = 0; i < layout_.size(); ++i)
    EXPECT_EQ(weights[i], i < end ? average[i] : values_[i]) << i;
}

TEST_F(RestoreTest, ReadsPartsThatAreNoWholeRows) {
  const auto& kernel = layout_.find("hidden/kernel");
  const compute::Range range{kernel.offset + 3, kernel.offset + 203};
  std::vector<float> part(range.size());
  load(found_, layout_, range, part, "");
  EXPECT_TRUE(
      std::equal(part.begin(), part.end(), values_.begin() + static_cast<long>(range.begin)));
}

TEST_F(RestoreTest, NamesATensorThatIsMissing) {
  EXPECT_THAT(load_error(compute::ParameterLayout({tensor("other/kernel", {2, 2})})),
              HasSubstr("tensor other/kernel is missing"));
  EXPECT_THAT(load_error(layout_, "v/"), HasSubstr("tensor v/"));
}

TEST_F(RestoreTest, NamesATensorOfAnotherShape) {
  EXPECT_THAT(load_error(compute::ParameterLayout({tensor("hidden/bias", {71})})),
              HasSubstr("hidden/bias has the shape [70], expected [71]"));
}

TEST_F(RestoreTest, NamesATensorWhoseRowsAreNotAllThere) {
  const auto lost =
      std::find_if(found_.manifest.files.begin(), found_.manifest.files.end(),
                   [](const FileEntry& f) { return f.name.starts_with("model-00001"); });
  ASSERT_NE(lost, found_.manifest.files.end());
  found_.manifest.files.erase(lost);
  EXPECT_THAT(load_error(layout_), HasSubstr("hidden/kernel"));
}

TEST_F(RestoreTest, RefusesSlicesThatTheirFileDoesNotFit) {
  ASSERT_FALSE(found_.manifest.slices.empty());
  found_.manifest.slices[0].first_row = 1000;
  EXPECT_THAT(load_error(layout_), HasSubstr("are not rows from 1000"));
}

TEST_F(RestoreTest, NeedsMemoryOfTheRangesSize) {
  std::vector<float> small(3);
  EXPECT_THROW(load(found_, layout_, {0, layout_.size()}, small, ""), Invalid);
}

TEST_F(RestoreTest, ExportReplacesTheOneBefore) {
  export_model(folder_.path() / "job", layout_, test_values(layout_, 50), Json::object());
  const fs::path file = export_model(folder_.path() / "job", layout_, values_, Json::object());
  std::vector<float> values(layout_.size());
  EXPECT_TRUE(take_weights("from", file, layout_, values).is_complete());
  EXPECT_EQ(values, values_);
  EXPECT_EQ(std::distance(fs::directory_iterator(file.parent_path()), {}), 1);
}

// The expected digest was computed with Python's hashlib from the values in layout order, without
// padding.
TEST(WeightsDigest, CoversTensorsInLayoutOrderWithoutPadding) {
  const compute::ParameterLayout layout({tensor("a", {2}), tensor("b", {3})});  // b comes first
  std::vector<float> values(layout.size(), 0.0f);
  for (size_t i = 0; i < 2; ++i) values[layout.find("a").offset + i] = 4.0f + static_cast<float>(i);
  for (size_t i = 0; i < 3; ++i) values[layout.find("b").offset + i] = 1.0f + static_cast<float>(i);
  EXPECT_EQ(weights_digest(layout, values),
            "0f0fcd7ac25b46f0b354529ced3e25ccbecce8a2303030a929c224c8a60a3a2e");
}

}  // namespace
}  // namespace muster::checkpoint
