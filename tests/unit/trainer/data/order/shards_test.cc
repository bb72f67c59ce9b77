#include "trainer/data/order/shards.h"

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::data {
namespace {

using testing::HasSubstr;

std::vector<int64_t> rows_of_an_epoch(const Shards& shards) {
  std::vector<int64_t> rows;
  for (uint64_t batch = 0; batch < shards.batches_per_epoch(); ++batch) {
    rows.push_back(shards.place(batch).rows);
  }
  return rows;
}

TEST(ShardsByRecord, NumberTheBatchesOfOneOrder) {
  const Shards shards = Shards::by_record(10, {.rows = 4});
  EXPECT_THAT(rows_of_an_epoch(shards), testing::ElementsAre(4, 4, 2));
  EXPECT_EQ(shards.place(2).begin, 8u);
  EXPECT_EQ(shards.place(3).rows, 0);
  EXPECT_EQ(shards.place(~uint64_t{0} / 8).rows, 0);
  EXPECT_EQ(shards.samples(), 10u);
}

TEST(ShardsByRecord, LeaveOutTheRemainderOnRequest) {
  const BatchRule rule{.rows = 4, .drop_remainder = true};
  EXPECT_THAT(rows_of_an_epoch(Shards::by_record(10, rule)), testing::ElementsAre(4, 4));
  EXPECT_EQ(Shards::by_record(10, rule).place(2).rows, 0);
  EXPECT_EQ(Shards::by_record(3, rule).batches_per_epoch(), 0u);
}

// Files of 6, 3 and 5 for two replicas: 11 samples and 3.
TEST(ShardsByFile, TakeTurnsAndAreEmptyWhenTheirFilesAreThrough) {
  const Shards shards = Shards::by_file({6, 3, 5}, {0, 2, 2}, {.rows = 4});
  EXPECT_THAT(rows_of_an_epoch(shards), testing::ElementsAre(4, 3, 4, 0, 3));
  EXPECT_EQ(shards.place(1).held, 1u);
  EXPECT_EQ(shards.place(4).held, 0u);
  EXPECT_EQ(shards.place(4).begin, 8u);
  EXPECT_EQ(shards.held().at(1).begin, 11u);
  EXPECT_EQ(shards.held().at(1).samples, 3u);
}

TEST(ShardsByFile, GiveAReplicaTheBatchesThatOneOfItsStepsAccumulates) {
  const Shards shards = Shards::by_file({7, 4}, {0, 2, 2}, {.rows = 2, .accumulation = 2});
  EXPECT_THAT(rows_of_an_epoch(shards), testing::ElementsAre(2, 2, 2, 2, 2, 1));
  const std::vector<size_t> replicas = {0, 0, 1, 1, 0, 0, 1, 1};
  for (size_t batch = 0; batch < replicas.size(); ++batch) {
    EXPECT_EQ(shards.place(batch).held, replicas[batch]) << batch;
  }
}

TEST(ShardsByFile, HoldOnlyThoseOfTheProcess) {
  const Shards shards = Shards::by_file({5, 6, 7, 8}, {1, 2, 3}, {.rows = 3});
  ASSERT_EQ(shards.held().size(), 2u);
  EXPECT_EQ(shards.held()[0].shard, 1u);
  EXPECT_EQ(shards.held()[0].samples, 6u);
  EXPECT_EQ(shards.held()[1].begin, 6u);
  EXPECT_EQ(shards.samples(), 26u);
  EXPECT_EQ(shards.place(4).held, 0u);
  try {
    shards.place(3);
    ADD_FAILURE() << "no error";
  } catch (const Invalid& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("batch 3: expected one of the logical replicas 1 to 2 of 3"));
    EXPECT_THAT(error.what(), HasSubstr("found one of 0"));
  }
}

// Whatever the sizes: the rows of an epoch's batches are its samples, each once.
TEST(ShardsByFile, ComeToEverySampleOnce) {
  for (const std::vector<uint64_t>& files :
       std::vector<std::vector<uint64_t>>{{1, 1, 1}, {100, 1, 1}, {1, 1, 100, 7}, {8, 16, 24, 3}}) {
    for (const int accumulation : {1, 3}) {
      const Shards shards =
          Shards::by_file(files, {0, 3, 3}, {.rows = 8, .accumulation = accumulation});
      std::vector<uint64_t> seen(shards.held().size());
      for (uint64_t batch = 0; batch < shards.batches_per_epoch(); ++batch) {
        const Shards::Place place = shards.place(batch);
        if (place.rows == 0) continue;
        EXPECT_EQ(place.begin, seen[place.held]);
        seen[place.held] += static_cast<uint64_t>(place.rows);
      }
      for (size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], shards.held()[i].samples);
      for (uint64_t batch = 0; batch < 100; ++batch) {
        EXPECT_EQ(shards.place(shards.batches_per_epoch() + batch).rows, 0);
      }
    }
  }
}

}  // namespace
}  // namespace muster::data
