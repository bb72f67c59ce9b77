#include "trainer/supervise/restart_rule.h"

#include <gtest/gtest.h>

namespace muster::supervise {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr RestartRule::Time kBegin{};

TEST(RestartRule, AsksWhetherARestartCanHelp) {
  for (const int code : {1, 2, 69, 70, 73, 129, 134, 137, 139, 143}) {
    RestartRule rule(1);
    EXPECT_TRUE(rule.restarts(code, false, kBegin)) << code;
    EXPECT_EQ(rule.total(), 1) << code;
  }
  for (const int code : {0, 64, 65, 71, 76, 78, 90, 91, 124, 126, 127}) {
    RestartRule rule(1);
    EXPECT_FALSE(rule.restarts(code, false, kBegin)) << code;
    EXPECT_EQ(rule.total(), 0) << code;
  }
}

TEST(RestartRule, WantOfMemoryIsLeftToTheOperator) {
  RestartRule rule(1);
  EXPECT_FALSE(rule.restarts(137, true, kBegin));
  EXPECT_TRUE(rule.restarts(137, false, kBegin));
}

TEST(RestartRule, AllowsSoManyWithinTheWindow) {
  RestartRule rule(3);
  EXPECT_TRUE(rule.restarts(137, false, kBegin));
  EXPECT_TRUE(rule.restarts(137, false, kBegin + minutes(4)));
  EXPECT_TRUE(rule.restarts(137, false, kBegin + minutes(8)));
  EXPECT_FALSE(rule.restarts(137, false, kBegin + minutes(10) - seconds(1)));
  EXPECT_TRUE(rule.restarts(137, false, kBegin + minutes(10)));
  EXPECT_FALSE(rule.restarts(137, false, kBegin + minutes(13)));
  EXPECT_TRUE(rule.restarts(137, false, kBegin + minutes(14)));
  EXPECT_EQ(rule.total(), 5);
}

TEST(RestartRule, OfNoneAllowsNone) {
  RestartRule rule(0);
  EXPECT_FALSE(rule.restarts(137, false, kBegin));
}

}  // namespace
}  // namespace muster::supervise
