#include "trainer/checkpoint/files/epoch_sums.h"

#include <gtest/gtest.h>

#include <limits>

namespace muster::checkpoint {
namespace {

compute::LossSums sums(double loss, int64_t rows) {
  compute::LossSums made;
  made.loss = loss;
  made.rows = rows;
  made.weight = static_cast<double>(rows);
  return made;
}

TEST(LastWholeEpoch, IsToldHoweverFarTheNextOneIs) {
  EpochSums epochs;
  epochs.add(3, sums(20, 10));
  epochs.add(4, sums(1, 2));
  EXPECT_EQ(epochs.last_whole(4), sums(20, 10));
}

TEST(LastWholeEpoch, OfTheFirstEpochIsWhatThereIs) {
  EpochSums epochs;
  epochs.add(0, sums(3, 2));
  EXPECT_EQ(epochs.last_whole(0), sums(3, 2));
}

// This happens after a checkpoint that did not have the sums.
TEST(LastWholeEpoch, IsTheOneUnderWayWhereNoneIsKnown) {
  EpochSums epochs;
  epochs.add(4, sums(1, 2));
  EXPECT_EQ(epochs.last_whole(4), sums(1, 2));
}

// Each of these sums may come from a peer.
TEST(EpochSumsTest, NeverComeToMoreThanTheyMaySay) {
  EpochSums epochs;
  for (int i = 0; i < 3; ++i) epochs.add(0, sums(1, compute::LossSums::kMostRows));
  EXPECT_EQ(epochs.of(0).rows, compute::LossSums::kMostRows);
  EXPECT_TRUE(epochs.of(0).plausible());
  epochs.add(0, sums(1, std::numeric_limits<int64_t>::max()));
  EXPECT_TRUE(epochs.of(0).plausible());
}

TEST(LastWholeEpoch, OfNothingIsNotKnown) {
  EXPECT_EQ(EpochSums().last_whole(0).rows, 0);
  EXPECT_EQ(EpochSums().last_whole(2).rows, 0);
}

}  // namespace
}  // namespace muster::checkpoint
