#include "trainer/data/batches/pipeline.h"

#include <chrono>
#include <numeric>
#include <thread>

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trainer/data/sources/stored_dataset.h"

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
class Slow : public StoredDataset {
 public:
  Slow() : StoredDataset(numbered()) {}
  void fill(const Use& use, const Augmentation& augmentation, Sample& workspace,
            Row& row) const override {
    if (use.sample % 13 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    StoredDataset::fill(use, augmentation, workspace, row);
  }
};

Shards shards() {
  return Shards::by_record(kSamples, {.rows = 4});
}

std::vector<float> values_in(const compute::Batch& batch) {
  std::vector<float> result;
  for (const void* sample : batch.features) result.push_back(*static_cast<const float*>(sample));
  return result;
}

class Reader {
 public:
  explicit Reader(const Dataset& dataset)
      : batcher_(dataset, shards(), true, 3), buffer_(dataset, 4) {}
  std::vector<float> at(const Cursor& cursor) {
    return values_in(batcher_.fill(buffer_, cursor.epoch, cursor.batch()));
  }

 private:
  Batcher batcher_;
  BatchBuffer buffer_;
};

Cursor cursor_of(const Share& share, uint64_t epoch = 0, uint64_t step = 0) {
  Cursor cursor;
  cursor.epoch = epoch;
  cursor.step = step;
  cursor.share = share;
  return cursor;
}

// Of the second of three members, two batches of each at a time.
constexpr Share kSecond{.stride = 6, .first = 2, .batches = 2};
// Of one that computes three of five replicas, the last of them.
constexpr Share kThreeOfFive{.stride = 5, .first = 2, .pieces = 3};
// Of the second of two devices of one that computes four of seven replicas, two batches of each.
constexpr Share kDevice{.stride = 14, .first = 4, .batches = 2, .pieces = 2, .distance = 4};

// Epoch and batch of so many from the beginning, of epochs of 17.
std::vector<std::pair<uint64_t, uint64_t>> first_of(Cursor cursor, int count) {
  std::vector<std::pair<uint64_t, uint64_t>> seen;
  for (int i = 0; i < count; ++i, cursor = cursor.next(17)) {
    seen.emplace_back(cursor.epoch, cursor.batch());
  }
  return seen;
}

// In the epoch's last step some have nothing to read any more.
TEST(CursorTest, GoesFromPieceToPieceFromStepToStepAndFromEpochToEpoch) {
  using Pair = std::pair<uint64_t, uint64_t>;
  EXPECT_THAT(first_of(cursor_of({}, 0, 15), 4),
              ElementsAre(Pair(0, 15), Pair(0, 16), Pair(1, 0), Pair(1, 1)));
  EXPECT_THAT(first_of(cursor_of(kSecond), 8),
              ElementsAre(Pair(0, 2), Pair(0, 3), Pair(0, 8), Pair(0, 9), Pair(0, 14), Pair(0, 15),
                          Pair(1, 2), Pair(1, 3)));
  EXPECT_THAT(first_of(cursor_of(kThreeOfFive), 13),
              ElementsAre(Pair(0, 2), Pair(0, 3), Pair(0, 4), Pair(0, 7), Pair(0, 8), Pair(0, 9),
                          Pair(0, 12), Pair(0, 13), Pair(0, 14), Pair(0, 17), Pair(0, 18),
                          Pair(0, 19), Pair(1, 2)));
  EXPECT_THAT(first_of(cursor_of(kDevice), 9),
              ElementsAre(Pair(0, 4), Pair(0, 5), Pair(0, 8), Pair(0, 9), Pair(0, 18), Pair(0, 19),
                          Pair(0, 22), Pair(0, 23), Pair(1, 4)));
}

TEST(PipelineTest, TakesAtOnceOnlyWhatIsReadyAndForeseen) {
  const StoredDataset dataset(numbered());
  Reader expected(dataset);
  Pipeline pipeline(Batcher(dataset, shards(), true, 3), 2);
  Cursor at = cursor_of({});
  EXPECT_EQ(pipeline.take_if_ready(at), nullptr);
  EXPECT_EQ(values_in(pipeline.take(at)), expected.at(at));
  EXPECT_EQ(pipeline.take_if_ready(cursor_of({}, 0, 7)), nullptr);
  for (int i = 0; i < 60; ++i) {
    at = at.next(26);
    const compute::Batch* batch = pipeline.take_if_ready(at);
    for (; batch == nullptr; batch = pipeline.take_if_ready(at))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(values_in(*batch), expected.at(at));
  }
}

TEST(PipelineTest, GivesWhatABatcherGivesWhateverItsTiming) {
  const Slow slow;
  const StoredDataset fast(numbered());
  for (const Dataset* dataset :
       {static_cast<const Dataset*>(&slow), static_cast<const Dataset*>(&fast)}) {
    for (const size_t ahead : {1, 2, 7}) {
      for (const Share& share : {kSecond, kThreeOfFive, kDevice}) {
        for (const int threads : {1, 3}) {
          Pipeline pipeline(Batcher(*dataset, shards(), true, 3), ahead, threads);
          Reader reader(fast);
          Cursor cursor = cursor_of(share);
          for (int i = 0; i < 40; ++i, cursor = cursor.next(26)) {
            if (i % 9 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
            ASSERT_EQ(values_in(pipeline.take(cursor)), reader.at(cursor)) << i;
          }
        }
      }
    }
  }
}

TEST(PipelineTest, BeginsAnewAfterAJump) {
  const Slow slow;
  for (const int threads : {1, 3}) {
    Pipeline pipeline(Batcher(slow, shards(), true, 3), 3, threads);
    Reader reader(slow);
    Cursor cursor = cursor_of(kSecond);
    for (int i = 0; i < 60; ++i) {
      if (i % 7 == 3) cursor = cursor_of({}, uint64_t(i) % 4, uint64_t(i) % 26);
      ASSERT_EQ(values_in(pipeline.take(cursor)), reader.at(cursor)) << i;
      if (i % 5 != 2) cursor = cursor.next(26);  // else the same once more
    }
  }
}

// Images that are moved at random: of whatever threads, each as it is for its epoch and place.
TEST(PipelineTest, CarriesOutStagesAsABatcherDoes) {
  Samples samples = numbered();
  samples.shape = {1, 4};
  samples.count = kSamples / 4;
  const StoredDataset dataset(std::move(samples));
  const Shards shards = Shards::by_record(dataset.size(), {.rows = 4});
  const std::vector<spec::StageKind> stages = {spec::Flip{0.5}};
  Batcher batcher(dataset, shards, true, 3, stages);
  BatchBuffer buffer(dataset, 4, BatchBuffer::Features::copied);
  int flipped = 0;
  for (const int threads : {1, 4}) {
    Pipeline pipeline(Batcher(dataset, shards, true, 3, stages), 3, threads);
    Cursor cursor;
    for (int i = 0; i < 30; ++i, cursor = cursor.next(shards.batches_per_epoch())) {
      const compute::Batch& wanted = batcher.fill(buffer, cursor.epoch, cursor.batch());
      const std::vector<float> taken = values_in(pipeline.take(cursor));
      ASSERT_EQ(taken, values_in(wanted)) << i;
      for (const float first : taken) flipped += static_cast<int>(first) % 4 == 3;
    }
  }
  EXPECT_GT(flipped, 40);
  EXPECT_LT(flipped, 200);
}

TEST(PipelineTest, LeavesWhatWasTakenUntilTheNextCall) {
  const StoredDataset dataset(numbered());
  Pipeline pipeline(Batcher(dataset, shards(), true, 3), 1);
  Cursor cursor;
  for (int i = 0; i < 20; ++i, cursor = cursor.next(26)) {
    const compute::Batch& batch = pipeline.take(cursor);
    const std::vector<float> before = values_in(batch);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_EQ(values_in(batch), before);
  }
}

TEST(PipelineTest, EndsWhileItFills) {
  const Slow slow;
  for (int i = 0; i < 20; ++i) {
    Pipeline pipeline(Batcher(slow, shards(), true, 3), 4, i % 3 + 1);
    if (i % 2 == 0) pipeline.take(cursor_of(kSecond));
  }
}

TEST(PipelineTest, TellsWhatItsThreadThrewAndGoesOnElsewhere) {
  const StoredDataset dataset(numbered());
  const Shards of_the_first = Shards::by_file({51, 50}, {0, 1, 2}, {.rows = 4});
  Pipeline pipeline(Batcher(dataset, of_the_first, true, 3), 2);
  const auto every_other = [](uint64_t batch) { return cursor_of({.stride = 2}, 0, batch); };
  EXPECT_EQ(pipeline.take(every_other(4)).rows, 4);
  EXPECT_THROW(pipeline.take(every_other(3)), Invalid);
  EXPECT_THROW(pipeline.take(every_other(3)), Invalid);
  EXPECT_EQ(pipeline.take(every_other(2)).rows, 4);
}

}  // namespace
}  // namespace muster::data
