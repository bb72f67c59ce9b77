#include "operator/local/hosts/placement.h"

#include <gtest/gtest.h>

namespace muster::local {
namespace {

using Clock = Placement::Clock;

std::vector<size_t> hosts_of(const std::vector<int>& slots, size_t replicas) {
  Placement placement(slots);
  std::vector<size_t> hosts;
  for (size_t i = 0; i < replicas; ++i) {
    const std::string name = std::to_string(i);
    placement.add(name, true);
    hosts.push_back(placement.place(name).host);
  }
  return hosts;
}

TEST(Placement, TakesTheHostWithTheMostFreeSlots) {
  struct Case {
    const char* name;
    std::vector<int> slots;
    std::vector<size_t> hosts;
  };
  for (const Case& c : {Case{"even", {2, 2}, {0, 1, 0, 1}}, Case{"one host", {3}, {0, 0, 0}},
                        Case{"a large one", {4, 1}, {0, 0, 0, 0, 1}},
                        Case{"the first of equals", {1, 3, 3}, {1, 2, 1, 2, 0, 1, 2}}}) {
    EXPECT_EQ(hosts_of(c.slots, c.hosts.size()), c.hosts) << c.name;
  }
}

TEST(Placement, CountsWhatIsFree) {
  Placement placement({2, 1});
  EXPECT_EQ(placement.free_slots(), 3);
  placement.add("ps-0", false);
  placement.add("ps-0", false);
  EXPECT_EQ(placement.free_slots(), 2);
  EXPECT_TRUE(placement.has("ps-0"));
  EXPECT_FALSE(placement.has("ps-1"));
}

TEST(Placement, NumbersThoseThatComputeOnEachHost) {
  Placement placement({3, 3});
  for (const char* name : {"chief-0", "worker-0", "worker-1", "worker-2"})
    placement.add(name, true);
  placement.add("ps-0", false);
  EXPECT_EQ(placement.place("chief-0").ordinal, 0);
  EXPECT_EQ(placement.place("worker-0").ordinal, 0);
  EXPECT_EQ(placement.place("worker-1").ordinal, 1);
  EXPECT_EQ(placement.place("worker-2").ordinal, 1);
}

TEST(Placement, MovesOnlyFromAHostThatWasLost) {
  const Clock::time_point now{};
  Placement placement({2, 2, 2});
  for (const char* name : {"a", "b", "c"}) placement.add(name, true);
  EXPECT_FALSE(placement.move("a", now));
  placement.lose(0, now);
  EXPECT_TRUE(placement.move("a", now));
  EXPECT_EQ(placement.place("a").host, 1u);
  EXPECT_EQ(placement.place("a").ordinal, 1);
  EXPECT_FALSE(placement.move("a", now));
  EXPECT_FALSE(placement.move("b", now));
}

TEST(Placement, StaysWhereNoOtherHostHasAFreeSlot) {
  const Clock::time_point now{};
  Placement placement({1, 1});
  placement.add("a", true);
  placement.add("b", true);
  placement.lose(0, now);
  EXPECT_FALSE(placement.move("a", now));
  EXPECT_EQ(placement.place("a").host, 0u);
}

TEST(Placement, ChoosesALostHostAgainAfterAWhile) {
  const Clock::time_point now{};
  Placement placement({2, 2});
  placement.add("a", true);
  placement.add("b", true);
  placement.lose(0, now);
  EXPECT_FALSE(placement.move("a", now + Placement::kAvoided));
  placement.lose(1, now + Placement::kAvoided);
  EXPECT_TRUE(placement.move("b", now + Placement::kAvoided));
  EXPECT_EQ(placement.place("b").host, 0u);
}

}  // namespace
}  // namespace muster::local
