#include "common/net/connection_limit.h"

#include <gtest/gtest.h>

#include "tests/unit/common/net/connected_pair.h"

namespace muster {
namespace {

TEST(ConnectionLimitTest, OfAnAddressWithTooManyTheOldestEnds) {
  ConnectionLimit limit({.of_address = 2, .in_all = 100});
  EXPECT_EQ(limit.add(1, "a"), std::nullopt);
  EXPECT_EQ(limit.add(2, "b"), std::nullopt);
  EXPECT_EQ(limit.add(3, "a"), std::nullopt);
  EXPECT_EQ(limit.add(4, "a"), 1);
  EXPECT_EQ(limit.add(5, "a"), 3);
  EXPECT_EQ(limit.add(6, "b"), std::nullopt);
}

TEST(ConnectionLimitTest, OfTooManyInAllTheAddressThatHasTheMostLosesItsOldest) {
  ConnectionLimit limit({.of_address = 100, .in_all = 4});
  limit.add(1, "calm");
  limit.add(2, "flood");
  limit.add(3, "flood");
  limit.add(4, "flood");
  EXPECT_EQ(limit.add(5, "flood"), 2);
  EXPECT_EQ(limit.add(6, "another"), 3);
  EXPECT_EQ(limit.add(7, "flood"), 4);
}

TEST(ConnectionLimitTest, WhatHasEndedCountsNoMore) {
  ConnectionLimit limit({.of_address = 2, .in_all = 3});
  limit.add(1, "a");
  limit.add(2, "a");
  limit.remove(1);
  limit.remove(1);
  EXPECT_EQ(limit.add(3, "a"), std::nullopt);
  EXPECT_EQ(limit.add(4, "b"), std::nullopt);
  limit.remove(3);
  EXPECT_EQ(limit.add(5, "c"), std::nullopt);
}

TEST(PeerAddressTest, IsTheOtherEndsOfEitherFamily) {
  for (const auto& [listened, expected] : std::vector<std::pair<std::string, std::string>>{
           {"127.0.0.1", "127.0.0.1"}, {"::ffff:127.0.0.1", "127.0.0.1"}, {"::1", "::1"}}) {
    const ConnectedPair pair(listened);
    EXPECT_EQ(peer_address(pair.accepted()).host, expected);
    EXPECT_EQ(peer_address(pair.accepted()).port, pair.connected_port());
  }
  EXPECT_EQ(peer_address(-1).host, "");
}

}  // namespace
}  // namespace muster
