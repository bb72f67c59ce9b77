#include "trainer/compute/cuda/feature_input.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <span>
#include <vector>

#include "common/error.h"
#include "tests/unit/trainer/compute/cuda/simulated_gpu.h"

namespace muster::compute::testing {
namespace {

using cuda::FeatureSource;

constexpr int64_t kRows = 3, kWidth = 4;

// Copies arrive at once in the one order, and as late as they may in the other.
class FeatureInputTest : public ::testing::TestWithParam<ThreadOrder> {
 protected:
  FeatureInputTest()
      : gpu(make_simulated_gpu(GetParam())),
        input(*gpu, kRows, kWidth),
        starts(*gpu, kRows),
        features(*gpu, kRows * kWidth),
        values(40 * kWidth) {
    std::iota(values.begin(), values.end(), 0.0f);
  }

  // A batch of these samples.
  Batch batch(const std::vector<size_t>& samples) {
    rows.emplace_back();
    for (const size_t sample : samples) rows.back().push_back(&values[sample * kWidth]);
    Batch batch;
    batch.rows = static_cast<int64_t>(samples.size());
    batch.features = rows.back();
    return batch;
  }
  std::span<const std::byte> memory() const { return std::as_bytes(std::span(values)); }

  // Returns the first element of each row that the GPU has got.
  std::vector<float> taken(const Batch& batch) {
    std::vector<uint64_t> begin(kRows);
    const FeatureSource source = input.take(batch, begin.data());
    scattered = source.scattered;
    gpu->upload(starts.data(), begin.data(), begin.size() * sizeof(uint64_t));
    input.convert(source, batch.rows, 1.0f, 0.0f, starts.data(), features.data());
    std::vector<float> all(static_cast<size_t>(batch.rows * kWidth)), result;
    gpu->download(all.data(), features.data(), all.size() * sizeof(float));
    gpu->wait();
    for (size_t row = 0; row < all.size(); row += kWidth) result.push_back(all[row] / kWidth);
    return result;
  }

  using Rows = std::vector<float>;
  std::unique_ptr<cuda::Gpu> gpu;
  cuda::FeatureInput input;
  cuda::GpuArray<uint64_t> starts;
  cuda::GpuArray<float> features;
  std::vector<float> values;
  std::deque<std::vector<const void*>> rows;
  bool scattered = false;
};

TEST_P(FeatureInputTest, TakesBatchesFromAnywhere) {
  EXPECT_EQ(taken(batch({5, 1, 7})), Rows({5, 1, 7}));
  EXPECT_EQ(taken(batch({2})), Rows({2}));
  EXPECT_FALSE(scattered);
}

TEST_P(FeatureInputTest, KeepsACopyOfWhatNeverChanges) {
  const auto served = input.serve(memory(), Content::constant);
  const Batch one = batch({39, 0, 7});
  EXPECT_EQ(taken(one), Rows({39, 0, 7}));
  std::ranges::fill(values, -1.0f);
  EXPECT_EQ(taken(one), Rows({39, 0, 7}));
  EXPECT_TRUE(scattered);
}

TEST_P(FeatureInputTest, GathersTheRowsOfADataSetThatIsTooLargeForACopy) {
  values.resize(gpu->free_bytes() / sizeof(float), 0.0f);
  const auto served = input.serve(memory(), Content::constant);
  EXPECT_EQ(taken(batch({39, 0, 7})), Rows({39, 0, 7}));
  EXPECT_FALSE(scattered);
}

TEST_P(FeatureInputTest, ReadsMemoryThatChangesEachTime) {
  const auto served = input.serve(memory(), Content::changing);
  const Batch one = batch({3, 4, 5});
  EXPECT_EQ(taken(one), Rows({3, 4, 5}));
  for (float& value : values) value += 2 * kWidth;
  EXPECT_EQ(taken(one), Rows({5, 6, 7}));
}

TEST_P(FeatureInputTest, HasNoCopyOnceItsServiceHasEnded) {
  auto served = input.serve(memory(), Content::constant);
  EXPECT_EQ(taken(batch({1, 2})), Rows({1, 2}));
  served.reset();
  for (float& value : values) value += kWidth;
  EXPECT_EQ(taken(batch({1, 2})), Rows({2, 3}));
  EXPECT_FALSE(scattered);
}

TEST_P(FeatureInputTest, TakesAPreparedBatchOrAnother) {
  const auto served = input.serve(memory(), Content::changing);
  const Batch first = batch({0, 1, 2}), second = batch({9, 4, 9}), other = batch({20, 21});
  EXPECT_EQ(taken(first), Rows({0, 1, 2}));
  input.prepare(second);
  EXPECT_EQ(taken(other), Rows({20, 21}));  // an evaluation comes between
  input.finish_reading();
  // The prepared one has been read, and is not read again.
  std::ranges::fill(values, -4.0f);
  EXPECT_EQ(taken(second), Rows({9, 4, 9}));
  EXPECT_EQ(taken(second), Rows({-1, -1, -1}));
}

TEST_P(FeatureInputTest, DoesNotTakeAnEarlierBatchOfTheSameMemoryForANewOne) {
  Batch one = batch({1, 2, 3});
  const std::vector<uint64_t> before{0, 1, 2}, after{3, 4, 5};
  one.positions = before;
  input.prepare(one);
  input.finish_reading();
  for (float& value : values) value += kWidth;
  one.positions = after;
  EXPECT_EQ(taken(one), Rows({2, 3, 4}));
}

TEST_P(FeatureInputTest, ReadsNothingOnceItsServiceHasEnded) {
  auto served = input.serve(memory(), Content::changing);
  const Batch one = batch({1, 2, 3});
  input.prepare(one);
  served.reset();
  std::ranges::fill(values, -4.0f);
  EXPECT_EQ(taken(one), Rows({1, 2, 3}));
}

TEST_P(FeatureInputTest, EndsItsServiceThoughTheGpuIsLost) {
  auto service = input.serve(memory(), Content::changing);
  const Batch next = batch({7, 8});
  input.prepare(next);
  lose(*gpu);
  EXPECT_THROW(taken(next), DeviceError);
  service.reset();
}

TEST_P(FeatureInputTest, ForgetsWhatItHasPreparedForAnEmptyBatch) {
  const auto served = input.serve(memory(), Content::changing);
  const Batch one = batch({1, 2, 3});
  input.prepare(one);
  input.prepare({});
  for (float& value : values) value += kWidth;
  EXPECT_EQ(taken(one), Rows({2, 3, 4}));
}

TEST_P(FeatureInputTest, TakesManyPreparedBatchesInTurn) {
  const auto served = input.serve(memory(), Content::changing);
  std::vector<Batch> all;
  for (size_t i = 0; i < 12; ++i) all.push_back(batch({3 * i, 3 * i + 1, 3 * i + 2}));
  for (size_t i = 0; i < all.size(); ++i) {
    const float first = 3.0f * static_cast<float>(i);
    EXPECT_EQ(taken(all[i]), Rows({first, first + 1, first + 2}));
    if (i + 1 < all.size()) input.prepare(all[i + 1]);
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, FeatureInputTest,
                         ::testing::Values(ThreadOrder::ascending, ThreadOrder::descending),
                         [](const auto& info) {
                           return info.param == ThreadOrder::ascending ? "AtOnce" : "Late";
                         });

}  // namespace
}  // namespace muster::compute::testing
