#include "trainer/checkpoint/epoch_sums.h"

#include <gtest/gtest.h>

#include <limits>

namespace muster::checkpoint {
namespace {

compute::LossSums sums(double loss, int64_t rows) {
  compute::LossSums made;
  made.loss = loss;
  made.rows = rows;
  return made;
}

TEST(TrainLoss, IsOfTheLastWholeEpochHoweverFarTheNextOneIs) {
  EpochSums epochs;
  epochs.add(3, sums(20, 10));
  epochs.add(4, sums(1, 2));
  EXPECT_EQ(epochs.train_loss(4), 2.0);
}

TEST(TrainLoss, OfTheFirstEpochIsOfWhatThereIs) {
  EpochSums epochs;
  epochs.add(0, sums(3, 2));
  EXPECT_EQ(epochs.train_loss(0), 1.5);
}

// As after a checkpoint that did not say its sums.
TEST(TrainLoss, WhereTheWholeEpochIsNotKnownIsOfTheOneUnderWay) {
  EpochSums epochs;
  epochs.add(4, sums(1, 2));
  EXPECT_EQ(epochs.train_loss(4), 0.5);
}

// Each of them may be what a peer says.
TEST(EpochSumsTest, NeverComeToMoreThanTheyMaySay) {
  EpochSums epochs;
  for (int i = 0; i < 3; ++i) epochs.add(0, sums(1, compute::LossSums::kMostRows));
  EXPECT_EQ(epochs.of(0).rows, compute::LossSums::kMostRows);
  EXPECT_TRUE(epochs.of(0).plausible());
  epochs.add(0, sums(1, std::numeric_limits<int64_t>::max()));
  EXPECT_TRUE(epochs.of(0).plausible());
}

TEST(TrainAccuracy, IsOfTheSameRowsAsTheLoss) {
  EpochSums epochs;
  compute::LossSums right = sums(20, 10);
  right.correct = 8;
  epochs.add(3, right);
  EXPECT_EQ(epochs.train_accuracy(3), 0.8);
  epochs.add(4, sums(1, 2));
  EXPECT_EQ(epochs.train_accuracy(4), 0.8);
  EXPECT_EQ(epochs.train_accuracy(7), std::nullopt);
}

TEST(TrainLoss, OfNothingIsNotKnown) {
  EXPECT_EQ(EpochSums().train_loss(0), std::nullopt);
  EXPECT_EQ(EpochSums().train_loss(2), std::nullopt);
}

}  // namespace
}  // namespace muster::checkpoint
