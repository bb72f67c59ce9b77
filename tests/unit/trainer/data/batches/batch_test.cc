#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "common/error.h"
#include "gmock/gmock.h"
#include "tests/unit/trainer/data/idx_files.h"
#include "trainer/data/batches/batcher.h"
#include "trainer/data/sources/stored_dataset.h"

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

Samples numbered(uint64_t count) {
  Samples samples;
  samples.count = count;
  samples.shape = {1};
  samples.features = Storage(count * sizeof(float));
  std::iota(samples.features.floats().begin(), samples.features.floats().end(), 0.0f);
  return samples;
}

std::vector<float> values(const compute::Batch& batch) {
  std::vector<float> result;
  for (const void* sample : batch.features) result.push_back(*static_cast<const float*>(sample));
  return result;
}

TEST(Batcher, PointsAtTheSamplesOfTheOrder) {
  const StoredDataset dataset(labelled(10));
  EpochOrder order(10, true, 4);
  Batcher batcher(dataset, Shards::by_record(10, {.rows = 4}), true, 4);
  BatchBuffer buffer(dataset, 4);
  const compute::Batch& batch = batcher.fill(buffer, 2, 1);
  EXPECT_EQ(batch.rows, 4);
  EXPECT_EQ(batch.epoch, 2u);
  EXPECT_THAT(batch.positions, ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(batch.targets, IsEmpty());
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(batch.features[i], filled(dataset, order.at(2, 4 + i)).features);
    EXPECT_EQ(batch.labels[i], dataset.label(order.at(2, 4 + i)));
  }
}

TEST(Batcher, EndsAnEpochWithWhatIsLeft) {
  const StoredDataset dataset(labelled(10));
  Batcher batcher(dataset, 4);
  BatchBuffer buffer(dataset, 4);
  EXPECT_EQ(batcher.fill(buffer, 0, 2).rows, 2);
  EXPECT_EQ(batcher.fill(buffer, 0, 2).labels.size(), 2u);
  EXPECT_EQ(batcher.fill(buffer, 0, 3).rows, 0);
  EXPECT_EQ(batcher.fill(buffer, 0, ~uint64_t{0} / 8).rows, 0);
}

TEST(Batcher, GivesTargetsOfARegression) {
  Samples samples = numbered(3);
  samples.targets = {10, 11, 20, 21, 30, 31};
  samples.label_count = 2;
  const StoredDataset dataset(std::move(samples));
  Batcher batcher(dataset, 1);
  BatchBuffer buffer(dataset, 1);
  const compute::Batch& batch = batcher.fill(buffer, 0, 2);
  EXPECT_THAT(batch.labels, IsEmpty());
  ASSERT_EQ(batch.targets.size(), 1u);
  EXPECT_EQ(batch.targets[0][1], 31.0f);
  EXPECT_EQ(batch.type, compute::ElementType::float32);
}

TEST(Batcher, CopiesWhereItsBufferIsToHoldTheFeatures) {
  const StoredDataset dataset(numbered(10));
  Batcher batcher(dataset, Shards::by_record(10, {.rows = 4}), true, 4);
  BatchBuffer in_place(dataset, 4), copied(dataset, 4, BatchBuffer::Features::copied);
  for (const uint64_t number : {0, 1, 2}) {
    const compute::Batch& a = batcher.fill(in_place, 1, number);
    const compute::Batch& b = batcher.fill(copied, 1, number);
    EXPECT_EQ(values(a), values(b));
    EXPECT_NE(a.features[0], b.features[0]);
    EXPECT_EQ(b.features[0], copied.batch().features[0]);
  }
}

// Files of 6, 3 and 5 samples, of which this process has those of both replicas.
TEST(Batcher, GivesEachReplicaAnOrderOfItsOwnSamples) {
  const StoredDataset dataset(numbered(14));
  const Shards shards = Shards::by_file({6, 3, 5}, {0, 2, 2}, {.rows = 4});
  Batcher batcher(dataset, shards, true, 7);
  Batcher second(dataset, Shards::by_file({11, 3}, {0, 2, 2}, {.rows = 4}), true, 7);
  BatchBuffer buffer(dataset, 4), other(dataset, 4);
  std::vector<float> seen[2];
  std::vector<float> first_epoch;
  std::set<uint64_t> positions;
  for (const uint64_t epoch : {0, 1}) {
    first_epoch = seen[0];
    seen[0].clear(), seen[1].clear(), positions.clear();
    for (uint64_t batch = 0; batch < shards.batches_per_epoch(); ++batch) {
      const compute::Batch& filled = batcher.fill(buffer, epoch, batch);
      for (const float value : values(filled)) seen[batch % 2].push_back(value);
      positions.insert(filled.positions.begin(), filled.positions.end());
      EXPECT_EQ(values(filled), values(second.fill(other, epoch, batch)));
    }
    EXPECT_THAT(seen[0], testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
    EXPECT_THAT(seen[1], testing::UnorderedElementsAre(11, 12, 13));
    EXPECT_EQ(positions.size(), 14u);
  }
  EXPECT_NE(seen[0], first_epoch);
}

TEST(ShardSeeds, DifferAndLeaveTheFirstAsItIs) {
  EXPECT_EQ(shard_seed(5, 0), 5u);
  EXPECT_NE(shard_seed(5, 1), shard_seed(5, 2));
  EXPECT_NE(shard_seed(5, 1), shard_seed(6, 1));
}

}  // namespace
}  // namespace muster::data
