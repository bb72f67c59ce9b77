#include "trainer/collective/state_digest.h"

#include <gtest/gtest.h>

namespace muster::collective {
namespace {

TEST(StateDigestTest, WhoDoesNotHoldWhatMostHoldIsOdd) {
  struct Case {
    std::vector<uint32_t> digests;
    std::vector<int> odd;
  };
  for (const Case& one : {Case{{}, {}}, Case{{4}, {}}, Case{{4, 4, 4}, {}}, Case{{4, 5}, {0, 1}},
                          Case{{4, 5, 4}, {1}}, Case{{5, 4, 4}, {0}},
                          Case{{4, 4, 5, 6}, {0, 1, 2, 3}}, Case{{4, 5, 6}, {0, 1, 2}},
                          Case{{4, 4, 5, 6, 4}, {2, 3}}, Case{{4, 5, 4, 5}, {0, 1, 2, 3}}})
    EXPECT_EQ(odd_members(one.digests), one.odd);
}

TEST(StateDigestTest, EveryFloatOfEveryBufferCounts) {
  const std::vector<compute::Floats> state = {{1, 2, 3}, {4, 5}};
  const uint32_t digest = digest_of(state);
  for (size_t buffer = 0; buffer < state.size(); ++buffer)
    for (size_t i = 0; i < state[buffer].size(); ++i) {
      auto other = state;
      other[buffer][i] = -other[buffer][i];
      EXPECT_NE(digest_of(other), digest);
    }
  EXPECT_EQ(digest_of(std::vector<compute::Floats>(state)), digest);
}

}  // namespace
}  // namespace muster::collective
