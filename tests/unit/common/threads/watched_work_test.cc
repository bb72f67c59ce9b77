#include "common/threads/watched_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "common/program/hang_guard.h"
#include "common/system/file.h"
#include "tests/unit/common/temporary_folder.h"

namespace muster {
namespace {

using Kind = WatchedWork::Kind;

std::vector<std::string> doings() {
  std::vector<std::string> doings;
  for (const WatchedWork::Seen& seen : WatchedWork::all())
    if (!seen.covered) doings.push_back(seen.doing);
  return doings;
}

uint64_t beats_of(const std::string& doing) {
  for (const WatchedWork::Seen& seen : WatchedWork::all())
    if (seen.doing == doing) return seen.beats;
  ADD_FAILURE() << doing << " is not under way";
  return 0;
}

TEST(WatchedWork, IsSeenWhileItIsUnderWay) {
  EXPECT_THAT(doings(), testing::IsEmpty());
  {
    const WatchedWork work(Kind::storage, "writing", "/a");
    EXPECT_THAT(doings(), testing::ElementsAre("writing /a"));
    EXPECT_EQ(WatchedWork::all().front().kind, Kind::storage);
  }
  EXPECT_THAT(doings(), testing::IsEmpty());
}

TEST(WatchedWork, OfAThreadOnlyTheInnermostIsLookedAt) {
  const WatchedWork outer(Kind::computing, "taking a step");
  const uint64_t before = beats_of("taking a step");
  {
    const WatchedWork inner(Kind::computing, "waiting for samples");
    WatchedWork::beat();
    EXPECT_THAT(doings(), testing::ElementsAre("waiting for samples"));
    EXPECT_EQ(beats_of("waiting for samples"), 1U);
  }
  EXPECT_THAT(doings(), testing::ElementsAre("taking a step"));
  EXPECT_GT(beats_of("taking a step"), before) << "the end of work within is a sign of life";
}

TEST(WatchedWork, OfOtherThreadsIsSeenBesideOurs) {
  std::latch begun(1), seen(1);
  std::jthread other([&] {
    const WatchedWork work(Kind::computing, "evaluating");
    begun.count_down();
    seen.wait();
  });
  begun.wait();
  const WatchedWork work(Kind::computing, "taking a step");
  WatchedWork::beat();
  EXPECT_THAT(doings(), testing::UnorderedElementsAre("evaluating", "taking a step"));
  EXPECT_EQ(beats_of("evaluating"), 0U) << "a thread beats for its own work only";
  seen.count_down();
}

TEST(WatchedWork, ABeatWithoutWorkDoesNothing) {
  WatchedWork::beat();
  EXPECT_THAT(doings(), testing::IsEmpty());
}

TEST(HangGuard, TellsWhatStandsStillAndEndsWhatIsHopeless) {
  std::latch ended(1);
  Stall last;
  const WatchedWork work(Kind::computing, "taking a step");
  {
    const HangGuard guard(std::chrono::milliseconds(1), [&](const Stall& stall) {
      last = stall;
      if (!ended.try_wait()) ended.count_down();
    });
    ended.wait();
    ASSERT_EQ(current_stalls().size(), 1U);
    EXPECT_EQ(current_stalls().front().doing, "taking a step");
  }
  EXPECT_EQ(last.doing, "taking a step");
  EXPECT_TRUE(last.hopeless);
  EXPECT_TRUE(current_stalls().empty());
}

}  // namespace
}  // namespace muster
