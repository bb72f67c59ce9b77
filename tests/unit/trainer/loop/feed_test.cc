#include "trainer/loop/feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "trainer/data/memory_dataset.h"

namespace muster::loop {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kSamples = 22;

data::Samples numbered() {
  data::Samples samples;
  samples.name = "numbers";
  samples.count = kSamples;
  samples.shape = {1};
  samples.features = data::Storage(kSamples * sizeof(float), data::StorageKind::temporary_file);
  std::iota(samples.features.floats().begin(), samples.features.floats().end(), 0.0f);
  return samples;
}

// Samples in a file, which keep what they were asked to fetch.
class Fetched : public data::MemoryDataset {
 public:
  Fetched() : MemoryDataset(numbered()) {}
  void will_need(uint64_t index) const override {
    MemoryDataset::will_need(index);
    fetched.push_back(index);
  }
  mutable std::vector<uint64_t> fetched;
};

spec::DataSource in_order(int64_t prefetch) {
  spec::DataSource source;
  source.shuffle = false;
  source.prefetch = prefetch;
  return source;
}

// Of one of three members, each of which takes two batches of two samples at a time.
Work second_member() {
  Work work;
  work.first_batch = 2;
  work.batches = 2;
  work.following = 8;
  return work;
}

std::vector<float> values(const compute::Batch& batch) {
  std::vector<float> result;
  for (const void* sample : batch.features) result.push_back(*static_cast<const float*>(sample));
  return result;
}

TEST(FeedTest, AsksForTheSamplesOfTheMembersLaterWork) {
  Fetched dataset;
  Feed feed(dataset, in_order(3), 1, 2, 11);
  EXPECT_THAT(values(feed.batch(second_member(), 0)), ElementsAre(4, 5));
  EXPECT_THAT(dataset.fetched, ElementsAre(16, 17));
  EXPECT_THAT(values(feed.batch(second_member(), 1)), ElementsAre(6, 7));
  EXPECT_THAT(dataset.fetched, ElementsAre(16, 17, 18, 19));
}

TEST(FeedTest, AsksForNothingBeyondTheEpoch) {
  Fetched dataset;
  for (const int64_t prefetch : {0, 5, 1'000'000}) {
    Feed feed(dataset, in_order(prefetch), 1, 2, 11);
    EXPECT_THAT(values(feed.batch(second_member(), 0)), ElementsAre(4, 5));
  }
  EXPECT_THAT(dataset.fetched, IsEmpty());
}

TEST(FeedTest, AsksForFourPiecesOfWorkWhereItMayChoose) {
  Fetched dataset;
  Feed feed(dataset, in_order(0), 1, 2, 11);
  Work work;
  work.following = 1;
  EXPECT_THAT(values(feed.batch(work)), ElementsAre(0, 1));
  EXPECT_THAT(dataset.fetched, ElementsAre(8, 9));
}

}  // namespace
}  // namespace muster::loop
