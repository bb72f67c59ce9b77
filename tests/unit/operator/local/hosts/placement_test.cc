#include "operator/local/hosts/placement.h"

#include <gtest/gtest.h>

namespace muster::local {
namespace {

using Begins = Placement::Begins;
using Clock = Placement::Clock;
using std::chrono::seconds;

constexpr Clock::time_point kNow{};

Placement with(const std::vector<int>& slots, const std::vector<std::string>& names) {
  Placement placement(slots);
  for (const std::string& name : names) placement.add({name, true, true});
  return placement;
}

TEST(Placement, TakesTheHostWithTheMostSlotsLeft) {
  struct Case {
    const char* name;
    std::vector<int> slots;
    std::vector<size_t> hosts;
  };
  for (const Case& c : {Case{"even", {2, 2}, {0, 1, 0, 1}}, Case{"one host", {3}, {0, 0, 0}},
                        Case{"a large one", {4, 1}, {0, 0, 0, 0, 1}},
                        Case{"the first of equals", {1, 3, 3}, {1, 2, 1, 2, 0, 1, 2}},
                        Case{"more than there are slots", {1, 1}, {0, 1, 0, 1}}}) {
    Placement placement(c.slots);
    std::vector<size_t> hosts;
    for (size_t i = 0; i < c.hosts.size(); ++i) {
      placement.add({std::to_string(i), true, true});
      hosts.push_back(placement.host_of(std::to_string(i)));
    }
    EXPECT_EQ(hosts, c.hosts) << c.name;
  }
}

TEST(Placement, KeepsAPlace) {
  Placement placement = with({2, 2}, {"a", "a", "b"});
  EXPECT_TRUE(placement.has("a"));
  EXPECT_FALSE(placement.has("c"));
  EXPECT_EQ(placement.host_of("b"), 1u);
  EXPECT_EQ(placement.slots(), 4);
}

TEST(Placement, NumbersThoseWithGpusOnEachHost) {
  Placement placement({4, 4});
  placement.add({"ps-0", false, false});
  for (const char* name : {"chief-0", "worker-0", "worker-1"}) placement.add({name, true, true});
  placement.add({"evaluator-0", false, true});
  EXPECT_EQ(placement.host_of("worker-0"), 0u);
  EXPECT_EQ(placement.ordinal_of("worker-0"), 0);
  EXPECT_EQ(placement.ordinal_of("chief-0"), 0);
  EXPECT_EQ(placement.ordinal_of("worker-1"), 1);
  EXPECT_EQ(placement.ordinal_of("evaluator-0"), 1);
  EXPECT_EQ(placement.most_computing(), 2);
}

TEST(Placement, MovesFromAHostThatWasLost) {
  Placement placement = with({2, 2, 2}, {"a", "b", "c"});
  for (const char* name : {"a", "b", "c"})
    EXPECT_EQ(placement.begin(name, kNow), Begins::as_before);
  placement.end("a", /*lost=*/true, kNow);
  EXPECT_EQ(placement.begin("a", kNow), Begins::elsewhere);
  EXPECT_EQ(placement.host_of("a"), 1u);
  EXPECT_EQ(placement.ordinal_of("a"), 1);
  placement.end("b", /*lost=*/false, kNow);
  EXPECT_EQ(placement.begin("b", kNow), Begins::as_before);
}

TEST(Placement, StaysWhereNoOtherHostHasAFreeSlot) {
  Placement placement = with({1, 1}, {"a", "b"});
  for (const char* name : {"a", "b"}) placement.begin(name, kNow);
  placement.end("a", true, kNow);
  EXPECT_EQ(placement.begin("a", kNow), Begins::anew);
  EXPECT_EQ(placement.host_of("a"), 0u);
}

// A worker may find its host lost before the chief does, which was on it too.
TEST(Placement, LeavesTheLastSlotToAReplicaThatWasAddedBefore) {
  Placement placement = with({3, 2}, {"chief", "worker-0", "worker-1", "worker-2"});
  EXPECT_EQ(placement.host_of("chief"), 0u);
  EXPECT_EQ(placement.host_of("worker-0"), 0u);
  for (const char* name : {"chief", "worker-0", "worker-1"}) placement.begin(name, kNow);
  placement.end("worker-0", true, kNow);
  EXPECT_EQ(placement.begin("worker-0", kNow), Begins::anew) << "the chief needs the slot";
  placement.end("chief", true, kNow);
  EXPECT_EQ(placement.begin("chief", kNow), Begins::elsewhere);
}

TEST(Placement, LeavesAHostThatWasLostHoweverLateItBegins) {
  Placement placement = with({1, 1}, {"a", "b"});
  for (const char* name : {"a", "b"}) placement.begin(name, kNow);
  placement.end("a", true, kNow);
  placement.end("b", false, kNow);
  EXPECT_EQ(placement.begin("a", kNow + 5 * Placement::kAvoided), Begins::elsewhere);
  EXPECT_EQ(placement.host_of("a"), 1u);
}

TEST(Placement, ChoosesALostHostAgainAfterAWhile) {
  Placement placement = with({1, 1}, {"a", "b"});
  for (const char* name : {"a", "b"}) placement.begin(name, kNow);
  placement.end("a", true, kNow);
  placement.end("b", true, kNow + seconds(1));
  EXPECT_EQ(placement.begin("b", kNow + seconds(2)), Begins::anew);
  placement.end("b", true, kNow + seconds(3));
  EXPECT_EQ(placement.begin("b", kNow + Placement::kAvoided), Begins::elsewhere);
  EXPECT_EQ(placement.host_of("b"), 0u);
}

TEST(Placement, OnlyAReplicaThatRunsTakesASlot) {
  // The job is elastic: it may have four workers, and two run.
  Placement placement = with({2, 2}, {"w0", "w1", "w2", "w3"});
  for (const char* name : {"w0", "w1"}) placement.begin(name, kNow);
  placement.end("w0", true, kNow);
  EXPECT_EQ(placement.begin("w0", kNow), Begins::elsewhere);
  EXPECT_EQ(placement.host_of("w0"), 1u);
  // A third finds its own host avoided and the other full, and takes the first all the same.
  EXPECT_EQ(placement.begin("w2", kNow), Begins::as_before);
}

}  // namespace
}  // namespace muster::local
