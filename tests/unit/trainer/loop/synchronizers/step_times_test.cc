#include "trainer/loop/synchronizers/step_times.h"

#include <gmock/gmock.h>

namespace muster::loop {
namespace {

using testing::DoubleEq;
using testing::Pair;
using testing::UnorderedElementsAre;

using Straggler = std::map<std::string, double>;

TEST(StragglerTest, IsNamedWithItsFactorAndWhatItWaitsFor) {
  EXPECT_EQ(
      straggler_of({0, 1, 2}, {{1, 0}, {3, 0}, {1, 0}}),
      (Straggler{{"stragglerRank", 1}, {"stragglerSlowdown", 3}, {"stragglerInputShare", 0}}));
  EXPECT_EQ(
      straggler_of({0, 1, 4}, {{1, 0.5}, {2, 0.5}, {5, 3.5}}),
      (Straggler{{"stragglerRank", 4}, {"stragglerSlowdown", 2.5}, {"stragglerInputShare", 1}}))
      << "the median member waits for its input too";
  EXPECT_THAT(straggler_of({0, 1}, {{2, 1.25}, {1, 0.5}}),
              UnorderedElementsAre(Pair("stragglerRank", 0), Pair("stragglerSlowdown", 2),
                                   Pair("stragglerInputShare", DoubleEq(0.75))));
}

TEST(StragglerTest, NeedsMembersThatHaveTakenSteps) {
  EXPECT_EQ(straggler_of({0}, {{1, 0}}), Straggler());
  EXPECT_EQ(straggler_of({0, 1}, {{}, {}}), Straggler());
  EXPECT_EQ(straggler_of({0, 1}, {{1, 0.5}, {1, 0.5}}).at("stragglerInputShare"), 0);
}

}  // namespace
}  // namespace muster::loop
