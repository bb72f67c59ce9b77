#include "trainer/ps/shard/versions.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <vector>

namespace muster::ps {
namespace {

using testing::ElementsAre;

Versions loaded() {
  Versions versions;
  versions.load({1, 2});
  return versions;
}

// Makes the next version, with all floats equal to `value`.
void advance(Versions& versions, float value) {
  std::ranges::fill(versions.advance(), value);
}
void change(Versions& versions, float value) {
  std::ranges::fill(versions.change(), value);
}

TEST(VersionsTest, TheOneBeforeStaysReadable) {
  Versions versions = loaded();
  EXPECT_TRUE(versions.previous().empty());
  advance(versions, 3);
  EXPECT_THAT(versions.current(), ElementsAre(3, 3));
  EXPECT_THAT(versions.previous(), ElementsAre(1, 2));
  advance(versions, 4);
  EXPECT_THAT(versions.previous(), ElementsAre(3, 3));
}

TEST(VersionsTest, WithoutLoansTwoBuffersTakeTurns) {
  Versions versions = loaded();
  const float* first = versions.current().data();
  advance(versions, 3);
  const float* second = versions.current().data();
  advance(versions, 4);
  EXPECT_EQ(versions.current().data(), first);
  advance(versions, 5);
  EXPECT_EQ(versions.current().data(), second);
  change(versions, 6);
  EXPECT_EQ(versions.current().data(), second);
}

TEST(VersionsTest, WhatIsLentStaysAsItWas) {
  Versions versions = loaded();
  const Versions::Loan first = versions.lend_current();
  change(versions, 3);
  const Versions::Loan third = versions.lend_current();
  for (float value = 4; value < 9; ++value) advance(versions, value);
  EXPECT_THAT(*first, ElementsAre(1, 2));
  EXPECT_THAT(*third, ElementsAre(3, 3));
  EXPECT_THAT(versions.previous(), ElementsAre(7, 7));
}

TEST(VersionsTest, ALoanOutlivesTheVersions) {
  Versions::Loan loan;
  {
    Versions versions = loaded();
    loan = versions.lend_current();
    versions.load({5, 6});
    EXPECT_THAT(versions.current(), ElementsAre(5, 6));
  }
  EXPECT_THAT(*loan, ElementsAre(1, 2));
}

TEST(VersionsTest, BuffersAreUsedAgainOnceTheirLoansHaveEnded) {
  Versions versions = loaded();
  Versions::Loan loan = versions.lend_current();
  const float* lent = loan->data();
  advance(versions, 3);
  advance(versions, 4);
  loan.reset();
  const Versions::Loan other = versions.lend_previous();
  advance(versions, 5);
  EXPECT_EQ(versions.current().data(), lent);
}

// With a checkpoint every few steps, only the first one makes a buffer.
TEST(VersionsTest, LoansThatComeAgainFindABufferForTheNextVersion) {
  Versions versions = loaded();
  Versions::Loan loan;
  std::set<const float*> seen;
  for (int i = 0; i < 20; ++i) {
    loan = versions.lend_current();
    for (int step = 0; step < 5; ++step) {
      advance(versions, static_cast<float>(step));
      seen.insert(versions.current().data());
    }
  }
  EXPECT_EQ(seen.size(), 3u);
}

}  // namespace
}  // namespace muster::ps
