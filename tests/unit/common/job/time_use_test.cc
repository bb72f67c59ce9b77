#include "common/job/time_use.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace muster {
namespace {

TEST(TimeUse, EachHasANameOfItsOwnThatIsRead) {
  std::set<std::string> names;
  for (const TimeUseName& use : time_uses()) {
    EXPECT_TRUE(names.insert(use.name).second) << use.name;
    EXPECT_EQ(time_use_of(use.name), use.use);
    EXPECT_STREQ(name_of(use.use), use.name);
  }
  EXPECT_EQ(time_use_of("lunch"), std::nullopt);
}

TEST(TimeSpent, IsReadAsItIsWritten) {
  TimeSpent spent;
  spent[TimeUse::computing] = 12.5;
  spent[TimeUse::final_evaluation] = 0.25;
  EXPECT_EQ(spent.json(), (Json{{"computing", 12.5}, {"finalEvaluation", 0.25}}));
  EXPECT_EQ(TimeSpent::of(spent.json()), spent);
  EXPECT_DOUBLE_EQ(spent.total(), 12.75);
}

TEST(TimeSpent, LeavesOutWhatNobodyCanHaveSpent) {
  const Json hostile = {
      {"computing", -5}, {"input", "much"}, {"lunch", 3}, {"joining", 1e300}, {"starting", 2}};
  const TimeSpent spent = TimeSpent::of(hostile);
  EXPECT_EQ(spent[TimeUse::computing], 0);
  EXPECT_EQ(spent[TimeUse::input], 0);
  EXPECT_EQ(spent[TimeUse::starting], 2);
  EXPECT_LE(spent.total(), 1.1e10);
  EXPECT_EQ(TimeSpent::of(Json("text")), TimeSpent());
}

TEST(TimeSpent, TellsWhatCameSinceThen) {
  TimeSpent before, now;
  before[TimeUse::computing] = 10;
  before[TimeUse::input] = 3;
  now[TimeUse::computing] = 12;
  now[TimeUse::input] = 1;
  const TimeSpent since = now.since(before);
  EXPECT_EQ(since[TimeUse::computing], 2);
  EXPECT_EQ(since[TimeUse::input], 0);
}

}  // namespace
}  // namespace muster
