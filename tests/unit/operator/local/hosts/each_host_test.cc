#include "operator/local/hosts/each_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>

namespace muster::local {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(EachHost, AreWorkedForAtTheSameTime) {
  std::latch both(2);
  std::atomic<int> calls = 0;
  const auto reasons = for_each_host(
      2, [&](size_t) { both.arrive_and_wait(); }, [&] { ++calls; });
  EXPECT_THAT(reasons, ElementsAre("", ""));
}

TEST(EachHost, MoreThanAreWorkedForAtATimeAreAllWorkedFor) {
  std::atomic<size_t> sum = 0;
  EXPECT_EQ(for_each_host(
                100, [&](size_t i) { sum += i; }, [] {})
                .size(),
            100u);
  EXPECT_EQ(sum, 99u * 100 / 2);
  EXPECT_THAT(for_each_host(
                  0, [](size_t) { FAIL(); }, [] {}),
              ElementsAre());
}

TEST(EachHost, WhyOneFailsIsReturnedAsOneLine) {
  const auto reasons = for_each_host(
      3,
      [](size_t i) {
        if (i == 1) throw Unavailable("no room:\n\x1b[2J" + std::string(10'000, 'x'));
      },
      [] {});
  EXPECT_THAT(reasons, ElementsAre("", HasSubstr("no room:  [2Jxxx"), ""));
  EXPECT_LT(reasons[1].size(), 1000u);
  EXPECT_EQ(unusable({"rack-1", "", "", 1, ""}, "no room"), "the host rack-1 is not used: no room");
}

TEST(EachHost, ABrokenSessionIsToldWithItsLastWords) {
  Session session({"sh", "-c", "echo first >&2; echo last words >&2; exit 7"},
                  Session::Output::pipe);
  EXPECT_STREQ(broken_off(BrokenWire("it is cut"), session, "sh").what(),
               "it is cut; ssh or sh has ended with 7: last words");
}

}  // namespace
}  // namespace muster::local
