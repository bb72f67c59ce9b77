#include <algorithm>
#include <map>
#include <numeric>

#include "common/error.h"
#include "gmock/gmock.h"
#include "tests/unit/trainer/data/idx_files.h"
#include "trainer/data/dataset.h"
#include "trainer/data/memory_dataset.h"

namespace muster::data {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<uint64_t> epoch_of(EpochOrder& order, uint64_t epoch) {
  std::vector<uint64_t> out(order.size());
  for (uint64_t i = 0; i < out.size(); ++i) out[i] = order.at(epoch, i);
  return out;
}

TEST(EpochOrder, IsTheIdentityWithoutShuffling) {
  EpochOrder order(4, false, 1);
  EXPECT_THAT(epoch_of(order, 7), ElementsAre(0, 1, 2, 3));
}

TEST(EpochOrder, IsAPermutation) {
  EpochOrder order(1000, true, 1);
  std::vector<uint64_t> sorted = epoch_of(order, 3);
  std::sort(sorted.begin(), sorted.end());
  std::vector<uint64_t> all(1000);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(sorted, all);
}

TEST(EpochOrder, DependsOnSeedAndEpochOnly) {
  EpochOrder a(100, true, 5), b(100, true, 5), other(100, true, 6);
  epoch_of(a, 9);  // another epoch first changes nothing
  EXPECT_EQ(epoch_of(a, 2), epoch_of(b, 2));
  EXPECT_NE(epoch_of(a, 2), epoch_of(a, 3));
  EXPECT_NE(epoch_of(a, 2), epoch_of(other, 2));
}

// A job that moves to another machine goes on in the same order.
TEST(EpochOrder, IsTheSameOnEveryPlatform) {
  EpochOrder order(8, true, 1);
  EXPECT_THAT(epoch_of(order, 0), ElementsAre(2, 1, 5, 0, 4, 7, 3, 6));
  EXPECT_THAT(epoch_of(order, 1), ElementsAre(5, 2, 4, 3, 0, 7, 1, 6));
}

// Of 24 orders of 4 samples each is as likely as another.
TEST(EpochOrder, PrefersNoPermutation) {
  EpochOrder order(4, true, 1);
  std::map<std::vector<uint64_t>, int> seen;
  for (uint64_t epoch = 0; epoch < 24000; ++epoch) ++seen[epoch_of(order, epoch)];
  EXPECT_EQ(seen.size(), 24u);
  for (const auto& [permutation, count] : seen) EXPECT_NEAR(count, 1000, 150);
}

TEST(EpochOrder, RefusesMoreSamplesThanItsNumbersHold) {
  EXPECT_THROW(EpochOrder(uint64_t{1} << 32, false, 1), Invalid);
}

Samples labelled(uint64_t count) {
  Samples samples;
  samples.count = count;
  samples.shape = {2};
  samples.label_count = 3;
  samples.type = compute::ElementType::uint8;
  samples.features = Storage(count * 2);
  for (uint64_t i = 0; i < count; ++i) {
    samples.labels.push_back(static_cast<int32_t>(i % 3));
  }
  return samples;
}

TEST(Batcher, PointsAtTheSamplesOfTheOrder) {
  const MemoryDataset dataset(labelled(10));
  EpochOrder order(10, true, 4);
  Batcher batcher(dataset, order, 4);
  const compute::Batch& batch = batcher.fill(2, 4, 4);
  EXPECT_EQ(batch.rows, 4);
  EXPECT_EQ(batch.epoch, 2u);
  EXPECT_THAT(batch.positions, ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(batch.targets, IsEmpty());
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(batch.features[i], dataset.features(order.at(2, 4 + i)));
    EXPECT_EQ(batch.labels[i], dataset.label(order.at(2, 4 + i)));
  }
}

TEST(Batcher, ClipsTheLastBatchOfAnEpoch) {
  const MemoryDataset dataset(labelled(10));
  EpochOrder order(10, false, 4);
  Batcher batcher(dataset, order, 4);
  EXPECT_EQ(batcher.fill(0, 8, 4).rows, 2);
  EXPECT_EQ(batcher.fill(0, 8, 4).labels.size(), 2u);
  EXPECT_EQ(batcher.fill(0, 10, 4).rows, 0);
  EXPECT_EQ(batcher.fill(0, ~uint64_t{0}, 4).rows, 0);
  EXPECT_EQ(batcher.fill(0, 0, 100).rows, 4);
}

TEST(Batcher, GivesTargetsOfARegression) {
  Samples samples;
  samples.count = 3;
  samples.shape = {1};
  samples.features = Storage(3 * sizeof(float));
  samples.targets = {10, 11, 20, 21, 30, 31};
  samples.label_count = 2;
  const MemoryDataset dataset(std::move(samples));
  EpochOrder order(3, false, 1);
  Batcher batcher(dataset, order, 2);
  const compute::Batch& batch = batcher.fill(0, 1, 2);
  EXPECT_THAT(batch.labels, IsEmpty());
  ASSERT_EQ(batch.targets.size(), 2u);
  EXPECT_EQ(batch.targets[1][1], 31.0f);
  EXPECT_EQ(batch.type, compute::ElementType::float32);
}

}  // namespace
}  // namespace muster::data
