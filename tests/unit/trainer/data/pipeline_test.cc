#include "trainer/data/pipeline.h"

#include <chrono>
#include <numeric>
#include <thread>

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trainer/data/memory_dataset.h"

namespace muster::data {
namespace {

using testing::ElementsAre;

constexpr uint64_t kSamples = 101;

Samples numbered() {
  Samples samples;
  samples.origins = {{0, "numbers", 0}};
  samples.count = kSamples;
  samples.shape = {1};
  samples.features = Storage(kSamples * sizeof(float), StorageKind::temporary_file);
  std::iota(samples.features.floats().begin(), samples.features.floats().end(), 0.0f);
  return samples;
}

// Now and then it takes long to come to a sample.
class Slow : public MemoryDataset {
 public:
  Slow() : MemoryDataset(numbered()) {}
  const void* features(uint64_t index) const override {
    if (index % 13 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return MemoryDataset::features(index);
  }
};

Shards shards() {
  return Shards::by_record(kSamples, {.rows = 4});
}

std::vector<float> values(const compute::Batch& batch) {
  std::vector<float> result;
  for (const void* sample : batch.features) result.push_back(*static_cast<const float*>(sample));
  return result;
}

class Reader {
 public:
  explicit Reader(const Dataset& dataset)
      : batcher_(dataset, shards(), true, 3), buffer_(dataset, 4) {}
  std::vector<float> at(const Cursor& cursor) {
    return values(batcher_.fill(buffer_, cursor.epoch, cursor.batch()));
  }

 private:
  Batcher batcher_;
  BatchBuffer buffer_;
};

// Of the second of three members, two batches of each at a time.
constexpr Cursor kSecond{.epoch = 0, .first = 2, .following = 8, .count = 2, .taken = 0};

TEST(CursorTest, GoesFromPieceToPieceAndFromEpochToEpoch) {
  std::vector<std::pair<uint64_t, uint64_t>> seen;
  Cursor cursor = kSecond;
  for (int i = 0; i < 10; ++i, cursor = cursor.next(20)) {
    seen.emplace_back(cursor.epoch, cursor.batch());
  }
  using Pair = std::pair<uint64_t, uint64_t>;
  EXPECT_THAT(seen, ElementsAre(Pair(0, 2), Pair(0, 3), Pair(0, 8), Pair(0, 9), Pair(0, 14),
                                Pair(0, 15), Pair(1, 2), Pair(1, 3), Pair(1, 8), Pair(1, 9)));
}

TEST(PipelineTest, GivesWhatABatcherGivesWhateverItsTiming) {
  const Slow slow;
  const MemoryDataset fast(numbered());
  for (const Dataset* dataset :
       {static_cast<const Dataset*>(&slow), static_cast<const Dataset*>(&fast)}) {
    for (const size_t ahead : {1, 2, 7}) {
      Pipeline pipeline(Batcher(*dataset, shards(), true, 3), ahead);
      Reader reader(fast);
      Cursor cursor = kSecond;
      for (int i = 0; i < 40; ++i, cursor = cursor.next(26)) {
        if (i % 9 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        ASSERT_EQ(values(pipeline.take(cursor)), reader.at(cursor)) << i;
      }
    }
  }
}

TEST(PipelineTest, BeginsAnewAfterAJump) {
  const Slow slow;
  Pipeline pipeline(Batcher(slow, shards(), true, 3), 3);
  Reader reader(slow);
  Cursor cursor = kSecond;
  for (int i = 0; i < 60; ++i) {
    if (i % 7 == 3) cursor = {.epoch = uint64_t(i) % 4, .first = uint64_t(i) % 26, .following = 30};
    ASSERT_EQ(values(pipeline.take(cursor)), reader.at(cursor)) << i;
    if (i % 5 != 2) cursor = cursor.next(26);  // else the same once more
  }
}

TEST(PipelineTest, LeavesWhatWasTakenUntilTheNextCall) {
  const MemoryDataset dataset(numbered());
  Pipeline pipeline(Batcher(dataset, shards(), true, 3), 1);
  Cursor cursor{.epoch = 0, .first = 0, .following = 1};
  for (int i = 0; i < 20; ++i, cursor = cursor.next(26)) {
    const compute::Batch& batch = pipeline.take(cursor);
    const std::vector<float> before = values(batch);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_EQ(values(batch), before);
  }
}

TEST(PipelineTest, EndsWhileItFills) {
  const Slow slow;
  for (int i = 0; i < 20; ++i) {
    Pipeline pipeline(Batcher(slow, shards(), true, 3), 4);
    if (i % 2 == 0) pipeline.take(kSecond);
  }
}

TEST(PipelineTest, TellsWhatItsThreadThrewAndGoesOnElsewhere) {
  const MemoryDataset dataset(numbered());
  const Shards of_the_first = Shards::by_file({51, 50}, {0, 1, 2}, {.rows = 4});
  Pipeline pipeline(Batcher(dataset, of_the_first, true, 3), 2);
  EXPECT_EQ(pipeline.take({.epoch = 0, .first = 4, .following = 6}).rows, 4);
  EXPECT_THROW(pipeline.take({.epoch = 0, .first = 3, .following = 5}), Invalid);
  EXPECT_THROW(pipeline.take({.epoch = 0, .first = 3, .following = 5}), Invalid);
  EXPECT_EQ(pipeline.take({.epoch = 0, .first = 2, .following = 4}).rows, 4);
}

}  // namespace
}  // namespace muster::data
