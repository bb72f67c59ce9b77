#include "trainer/loop/batches/feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include "common/error.h"
#include "common/threads/mutex.h"
#include "tests/unit/trainer/compute/cuda/simulated_gpu.h"
#include "tests/unit/trainer/compute/support.h"
#include "tests/unit/trainer/loop/support.h"
#include "trainer/compute/cuda/engine.h"
#include "trainer/data/sources/stored_dataset.h"

namespace muster::loop {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kSamples = 22;

data::Samples numbered() {
  data::Samples samples;
  samples.origins = {{0, "numbers", 0}};
  samples.count = kSamples;
  samples.shape = {1};
  samples.features = data::Storage(kSamples * sizeof(float), data::StorageKind::temporary_file);
  std::iota(samples.features.floats().begin(), samples.features.floats().end(), 0.0f);
  return samples;
}

// Samples in a file, which keep what they were asked to fetch.
class Fetched : public data::StoredDataset {
 public:
  Fetched() : StoredDataset(numbered()) {}
  void will_need(uint64_t index) const override {
    StoredDataset::will_need(index);
    fetched.push_back(index);
  }
  mutable std::vector<uint64_t> fetched;
};

// Whose work comes in no order that could be foreseen.
Feed::Options out_of_turn(int64_t prefetch) {
  return {.shuffle = false, .prefetch = prefetch, .in_turn = false};
}

data::Shards in_twos() {
  return data::Shards::by_record(kSamples, {.rows = 2});
}

// Of one of three members, each of which takes two batches of two samples at a time.
Work second_member() {
  Work work;
  work.at.share = {.stride = 6, .first = 2, .batches = 2};
  return work;
}

std::vector<float> values(const compute::Batch& batch) {
  std::vector<float> result;
  for (const void* sample : batch.features) result.push_back(*static_cast<const float*>(sample));
  return result;
}

TEST(FeedTest, AsksForTheSamplesOfTheMembersLaterWork) {
  Fetched dataset;
  Feed feed(dataset, in_twos(), out_of_turn(3));
  EXPECT_THAT(values(feed.batch(second_member(), 0)), ElementsAre(4, 5));
  EXPECT_THAT(dataset.fetched, ElementsAre(16, 17));
  EXPECT_THAT(values(feed.batch(second_member(), 1)), ElementsAre(6, 7));
  EXPECT_THAT(dataset.fetched, ElementsAre(16, 17, 18, 19));
}

TEST(FeedTest, AsksForNothingBeyondTheEpoch) {
  Fetched dataset;
  for (const int64_t prefetch : {0, 5, 1'000'000}) {
    Feed feed(dataset, in_twos(), out_of_turn(prefetch));
    EXPECT_THAT(values(feed.batch(second_member(), 0)), ElementsAre(4, 5));
  }
  EXPECT_THAT(dataset.fetched, IsEmpty());
}

TEST(FeedTest, AsksForFourPiecesOfWorkWhereItMayChoose) {
  Fetched dataset;
  Feed feed(dataset, in_twos(), out_of_turn(0));
  EXPECT_THAT(values(feed.batch({})), ElementsAre(0, 1));
  EXPECT_THAT(dataset.fetched, ElementsAre(8, 9));
}

// The members' parts of an epoch's steps, whether the data lie in memory, are read as they are
// asked for or copied ahead.
TEST(FeedTest, GivesTheSameBatchesHoweverItReadsThem) {
  data::Samples samples = numbered();
  samples.features = data::Storage(kSamples * sizeof(float));
  std::iota(samples.features.floats().begin(), samples.features.floats().end(), 0.0f);
  const data::StoredDataset in_memory(std::move(samples)), in_a_file(numbered());
  spec::TrainingSpec spec;
  spec.batch_size = 2;
  spec.gradient_accumulation = 2;
  spec.epochs = 3;
  const Workload workload(spec, kSamples, 3, true);
  for (int rank = 0; rank < 3; ++rank) {
    Feed pointers(in_memory, in_twos(), {});
    Feed on_demand(in_a_file, in_twos(), {.in_turn = false});
    Feed ahead(in_a_file, in_twos(), {.prefetch = 5, .accumulation = 2});
    for (checkpoint::Position at; !workload.finished(at); workload.advance(at)) {
      const Work work = workload.part_of(at, rank);
      for (int i = 0; i < work.batches(); ++i) {
        const std::vector<float> expected = values(pointers.batch(work, i));
        EXPECT_EQ(values(on_demand.batch(work, i)), expected);
        EXPECT_EQ(values(ahead.batch(work, i)), expected);
      }
    }
    EXPECT_GT(ahead.waited_seconds(), 0.0);
  }
}

// It tells which batch it is to prepare, and looks ahead when the test says so.
class Foresight : public compute::cuda::CudaEngine {
 public:
  Foresight()
      : CudaEngine(compute::build_graph(model()), options(),
                   compute::testing::make_simulated_gpu()) {}
  void set_meanwhile(const std::function<void()>& function) override { look_ahead = function; }
  void prepare(const compute::Batch& next) override { prepared = values(next); }

  // Looks until something is there.
  const std::vector<float>& look() {
    for (look_ahead(); prepared.empty(); look_ahead())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return prepared;
  }

  std::function<void()> look_ahead;
  std::vector<float> prepared;

 private:
  static compute::ModelSpec model() {
    compute::ModelSpec model;
    model.input_shape = {1};
    model.label_count = 2;
    compute::Dense dense;
    dense.units = 2;
    model.layers.push_back({"y", dense, {}, true});
    return model;
  }
  static compute::EngineOptions options() {
    compute::EngineOptions options;
    options.max_rows = 2;
    return options;
  }
};

TEST(FeedTest, LetsAnEnginePrepareTheBatchThatComesNext) {
  data::Samples samples = numbered();
  samples.features = data::Storage(kSamples * sizeof(float));
  std::iota(samples.features.floats().begin(), samples.features.floats().end(), 0.0f);
  const data::StoredDataset in_memory(std::move(samples)), in_a_file(numbered());
  for (const data::Dataset* dataset : {&in_memory, &in_a_file}) {
    Foresight engine;
    Feed feed(*dataset, in_twos(), {.shuffle = false});
    feed.connect(engine);
    Work work;
    EXPECT_THAT(values(feed.batch(work)), ElementsAre(0, 1));
    EXPECT_THAT(engine.look(), ElementsAre(2, 3));
    work.at.step = 1;
    EXPECT_THAT(values(feed.batch(work)), ElementsAre(2, 3));
    engine.prepared.clear();
    EXPECT_THAT(engine.look(), ElementsAre(4, 5));
    work.at.step = 6;
    // Another one: what was prepared is given up before its memory is used again.
    EXPECT_THAT(values(feed.batch(work)), ElementsAre(12, 13));
    EXPECT_THAT(engine.prepared, IsEmpty());
    EXPECT_THAT(values(feed.batch(work)), ElementsAre(12, 13));
    work.at.step = 10;
    EXPECT_THAT(values(feed.batch(work)), ElementsAre(20, 21));
    EXPECT_THAT(engine.look(), ElementsAre(0, 1));  // of the next epoch
  }
}

// Whichever replicas it computes, and to the end of epochs whose last step is not full.
TEST(FeedTest, ReadsNothingThatIsNotAskedFor) {
  spec::TrainingSpec spec;
  spec.batch_size = 2;
  spec.epochs = 6;
  constexpr int kAhead = 6;  // samples
  struct Case {
    int replicas;
    Turn turn;
  };
  for (const auto& [replicas, turn] :
       {Case{1, {}}, Case{3, {.first = 1}}, Case{3, {.count = 3}},
        Case{4, {.first = 1, .count = 3}}, Case{7, {.first = 3, .count = 2, .distance = 3}},
        Case{7, {.first = 6}}})
    for (const int accumulation : {1, 2, 3}) {
      spec.gradient_accumulation = accumulation;
      const Workload workload(spec, kSamples, replicas, true);
      const CountedDataset dataset(numbered());
      uint64_t rows = 0;
      {
        Feed feed(dataset, in_twos(), {.prefetch = kAhead});
        for (checkpoint::Position at; !workload.finished(at); workload.advance(at)) {
          Turn due = turn;
          for (due.taken = 0; due.taken < due.count; ++due.taken)
            for (int i = 0; i < accumulation; ++i)
              rows += static_cast<uint64_t>(feed.batch(workload.part_of(at, due), i).rows);
        }
      }
      EXPECT_LE(dataset.read(), rows + kAhead)
          << turn.count << " of " << replicas << " replicas, accumulation " << accumulation;
    }
}

TEST(FeedTest, CopiesAtMostSoMuchAheadAsIsSensible) {
  const data::StoredDataset in_a_file(numbered());
  Feed feed(in_a_file, data::Shards::by_record(kSamples, {.rows = 1}), {.prefetch = 1'048'576});
  EXPECT_EQ(feed.batch({}).rows, 1);
}

// Samples that are work to make. fill() waits for a second thread, as long as none has come.
class Meeting : public data::StoredDataset {
 public:
  Meeting() : StoredDataset(numbered()) { traits.effort = data::Effort::work; }
  void fill(const data::Use& use, const data::Augmentation& augmentation, data::Sample& workspace,
            data::Row& row) const override {
    {
      MutexLock lock(mutex_);
      most_ = std::max(most_, ++inside_);
      changed_.notify_all();
      changed_.wait_for(lock, std::chrono::seconds(20), [&] { return most_ > 1; });
      --inside_;
    }
    if (use.sample == broken) throw Invalid("broken");
    StoredDataset::fill(use, augmentation, workspace, row);
  }
  int most_at_once() const {
    const MutexLock lock(mutex_);
    return most_;
  }
  uint64_t broken = kSamples;

 private:
  mutable Mutex mutex_;
  mutable ConditionVariable changed_;
  mutable int inside_ = 0;
  mutable int most_ = 0;
};

TEST(FeedTest, ManyThreadsMakeABatchThatCannotBeForeseen) {
  const Meeting dataset;
  const auto shards = data::Shards::by_record(kSamples, {.rows = 8});
  Feed feed(dataset, shards, {.shuffle = false, .in_turn = false, .threads = 3});
  EXPECT_THAT(values(feed.batch({})), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_GT(dataset.most_at_once(), 1);
  Work second;
  second.at.step = 2;
  EXPECT_THAT(values(feed.batch(second)), ElementsAre(16, 17, 18, 19, 20, 21));
}

TEST(FeedTest, WhatAnyOfTheThreadsThrowsIsThrown) {
  Meeting dataset;
  dataset.broken = 5;
  const auto shards = data::Shards::by_record(kSamples, {.rows = 8});
  Feed feed(dataset, shards, {.shuffle = false, .in_turn = false, .threads = 3});
  EXPECT_THAT([&] { feed.batch({}); }, testing::ThrowsMessage<Invalid>("broken"));
  Work second;
  second.at.step = 1;
  EXPECT_THAT(values(feed.batch(second)), ElementsAre(8, 9, 10, 11, 12, 13, 14, 15));
}

TEST(FeedTest, AllocatesNothingOnceItIsMade) {
  data::Samples samples = numbered();
  samples.features = data::Storage(kSamples * sizeof(float));
  const data::StoredDataset in_memory(std::move(samples)), in_a_file(numbered());
  Feed pointers(in_memory, in_twos(), {});
  Feed on_demand(in_a_file, in_twos(), {.in_turn = false});
  Feed ahead(in_a_file, in_twos(), {});
  const Meeting made;
  Feed together(made, in_twos(), {.in_turn = false, .threads = 2});
  Work work;
  const auto read_epoch = [&] {
    for (work.at.step = 0; work.at.step < 11; ++work.at.step) {
      for (Feed* feed : {&pointers, &on_demand, &ahead, &together}) feed->batch(work);
    }
    ++work.at.epoch;
  };
  read_epoch();
  const int64_t before = compute::testing::allocations();
  for (int i = 0; i < 5; ++i) read_epoch();
  EXPECT_EQ(compute::testing::allocations() - before, 0);
}

}  // namespace
}  // namespace muster::loop
