#include "common/threads/hang_watch.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = WatchedWork::Kind;

// Work as a HangWatch is shown it, once a second.
class HangWatchTest : public testing::Test {
 protected:
  std::vector<Stall> look_for(int looks) {
    std::vector<Stall> stalls;
    for (int i = 0; i < looks; ++i) stalls = look_after(seconds(1));
    return stalls;
  }
  // The last look was at the moment of the sign.
  void give_a_sign() {
    look_for(1);
    ++works_[0].beats;
    look_for(1);
  }
  std::vector<Stall> look_after(milliseconds time) {
    now_ += time;
    return watch_.look(works_, now_);
  }

  HangWatch watch_{seconds(30)};
  HangWatch::Time now_{std::chrono::hours(1)};
  std::vector<WatchedWork::Seen> works_ = {{1, Kind::computing, "taking a step", 0}};
};

TEST_F(HangWatchTest, WorkWithoutASignOfLifeIsToldAfterTheLeastTime) {
  EXPECT_TRUE(look_for(30).empty());
  const std::vector<Stall> stalls = look_for(1);
  ASSERT_EQ(stalls.size(), 1U);
  EXPECT_EQ(stalls[0].doing, "taking a step");
  EXPECT_EQ(stalls[0].lasted, seconds(30));
}

TEST_F(HangWatchTest, ItIsHopelessAfterThreeTimesAsLong) {
  give_a_sign();
  EXPECT_FALSE(look_for(89).front().hopeless);
  EXPECT_TRUE(look_for(1).front().hopeless);
}

TEST_F(HangWatchTest, TheFirstWorkOfAProcessHasLonger) {
  EXPECT_FALSE(look_for(600).front().hopeless);
  EXPECT_TRUE(look_for(1).front().hopeless);
}

TEST_F(HangWatchTest, WorkThatIsOverWasASignOfLife) {
  look_for(1);
  works_[0].id = 2;
  look_for(1);
  EXPECT_FALSE(look_for(89).front().hopeless);
  EXPECT_TRUE(look_for(1).front().hopeless);
}

TEST_F(HangWatchTest, ASignOfLifeBeginsTheTimeAnew) {
  look_for(2);
  ++works_[0].beats;
  EXPECT_TRUE(look_for(30).empty());
  EXPECT_EQ(look_for(1).size(), 1U);
}

TEST_F(HangWatchTest, WorkThatIsOverIsForgottenAndNewWorkHasAllTheTime) {
  look_for(40);
  works_[0].id = 2;
  EXPECT_TRUE(look_for(30).empty());
  works_.clear();
  EXPECT_TRUE(look_for(100).empty());
}

TEST_F(HangWatchTest, SlowWorkHasTenTimesItsLongestPause) {
  look_for(9);
  ++works_[0].beats;
  look_for(1);  // it was first seen nine seconds ago
  EXPECT_TRUE(look_for(89).empty());
  EXPECT_EQ(look_for(1).size(), 1U);
  EXPECT_FALSE(look_for(179).front().hopeless);
  EXPECT_TRUE(look_for(1).front().hopeless);
}

TEST_F(HangWatchTest, TheTimeOfWorkThatHasEndedIsAPauseToo) {
  look_for(9);
  works_[0].id = 2;
  look_for(1);  // the first one was there for nine seconds
  EXPECT_TRUE(look_for(89).empty());
  EXPECT_EQ(look_for(1).size(), 1U);
}

TEST_F(HangWatchTest, ASignOfOtherWorkDoesNotShortenTheTimeOfAFirstStep) {
  works_.push_back({2, Kind::computing, "loading samples", 0});
  look_for(1);
  ++works_[1].beats;
  look_for(1);
  works_.pop_back();
  EXPECT_FALSE(look_for(598).front().hopeless);
  EXPECT_TRUE(look_for(1).front().hopeless);
}

TEST_F(HangWatchTest, CoveredWorkIsNotLookedAtAndHasNotEnded) {
  works_[0].covered = true;
  works_.push_back({2, Kind::storage, "reading /data/a.jpg", 0});
  EXPECT_EQ(look_for(100).size(), 1U);
  works_.pop_back();
  works_[0].covered = false;
  EXPECT_TRUE(look_for(29).empty()) << "its time begins when it is uncovered";
  EXPECT_FALSE(look_for(500).front().hopeless) << "it has given no sign of life yet";
}

TEST_F(HangWatchTest, APauseOfOneKindSaysNothingOfTheOther) {
  works_[0].kind = Kind::storage;
  look_for(20);
  ++works_[0].beats;
  look_for(1);
  works_.push_back({2, Kind::computing, "taking a step", 0});
  EXPECT_TRUE(look_for(30).empty());
  EXPECT_EQ(look_for(1).size(), 1U);
}

TEST_F(HangWatchTest, StorageIsNeverHopelessAndNorIsWhatItHoldsUp) {
  works_.push_back({2, Kind::storage, "reading /data/a.jpg", 0});
  const std::vector<Stall> stalls = look_for(1000);
  ASSERT_EQ(stalls.size(), 2U);
  EXPECT_FALSE(stalls[0].hopeless);
  EXPECT_FALSE(stalls[1].hopeless);
}

TEST_F(HangWatchTest, TheLongestStallIsTheFirst) {
  look_for(5);
  works_.insert(works_.begin(), {2, Kind::computing, "evaluating", 0});
  const std::vector<Stall> stalls = look_for(40);
  ASSERT_EQ(stalls.size(), 2U);
  EXPECT_EQ(stalls[0].work, 1U);
  EXPECT_GT(stalls[0].lasted, stalls[1].lasted);
}

TEST_F(HangWatchTest, AProcessThatWasStoppedAsAWholeHasNothingThatHangs) {
  look_for(29);
  EXPECT_TRUE(look_after(std::chrono::minutes(10)).empty());
  EXPECT_TRUE(look_for(29).empty());
  EXPECT_EQ(look_for(1).size(), 1U);
}

}  // namespace
}  // namespace muster
