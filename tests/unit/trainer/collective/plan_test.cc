#include "trainer/collective/plan.h"

#include <gmock/gmock.h>

#include "common/error.h"
#include "common/exit_code.h"
#include "trainer/collective/group_shape.h"

namespace muster::collective {
namespace {

using ::testing::HasSubstr;

CollectivePlan plan(int members, uint32_t replicas, uint32_t source) {
  CollectivePlan plan;
  for (int rank = 0; rank < members; ++rank)
    plan.add_members()->set_rank(static_cast<uint32_t>(rank));
  plan.set_replicas(replicas);
  plan.set_source(source);
  return plan;
}

CollectivePlan from(const PositionMessage& position, const std::string& checkpoint) {
  CollectivePlan made = plan(2, 2, 0);
  *made.mutable_position() = position;
  made.set_checkpoint(checkpoint);
  return made;
}

TEST(PlanTest, WhatCanBeginIsAccepted) {
  for (const auto& possible :
       {plan(1, 1, 0), plan(2, 2, 1), plan(3, 64, 2),
        plan(GroupShape::kMostMembers, GroupShape::kMostReplicas, GroupShape::kMostMembers - 1)})
    EXPECT_NO_THROW(require_possible(possible));
  EXPECT_NO_THROW(require_possible(from({}, "checkpoints/ckpt-12-g1")));
}

TEST(PlanTest, WhatCannotIsNamed) {
  PositionMessage far;
  far.set_step(~uint64_t{0});
  PositionMessage negative;
  negative.add_sums()->set_rows(-1);

  struct Case {
    CollectivePlan plan;
    std::string names;
  };
  const std::vector<Case> cases = {
      {plan(0, 1, 0), "of 1 to 4095 members, found 0"},
      {plan(GroupShape::kMostMembers + 1, GroupShape::kMostReplicas, 0), "members, found 4096"},
      {plan(2, 0, 0), "of 2 to 1048576 logical replicas, found 0"},
      {plan(3, 2, 0), "of 3 to 1048576 logical replicas, found 2"},
      {plan(2, GroupShape::kMostReplicas + 1, 0), "logical replicas, found 1048577"},
      {plan(2, ~0u, 0), "logical replicas, found 4294967295"},
      {plan(2, 2, 2), "one of its 2 members brings, found that member 2 does"},
      {plan(2, 2, ~0u), "found that member 4294967295 does"},
      {from(far, ""), "found step 18446744073709551615, epoch 0 and batch 0"},
      {from(negative, ""), "from a position that training can have reached"},
      {from({}, "/etc"), "below the job's storage, found \"/etc\""},
      {from({}, "checkpoints/../../other"), "found \"checkpoints/../../other\""}};
  for (const Case& one : cases) {
    try {
      require_possible(one.plan);
      ADD_FAILURE() << "accepted: " << one.names;
    } catch (const Invalid& error) {
      EXPECT_EQ(error.exit_code(), kProtocol);
      EXPECT_THAT(error.what(), HasSubstr(one.names));
    }
  }
}

TEST(PlanTest, KnowsItsMembersByTheirIncarnation) {
  CollectivePlan two = plan(2, 2, 0);
  two.mutable_members(0)->set_incarnation(7);
  two.mutable_members(1)->set_incarnation(9);
  EXPECT_EQ(place_of(two, 7), 0);
  EXPECT_EQ(place_of(two, 9), 1);
  EXPECT_EQ(place_of(two, 8), -1);
}

TEST(PlanTest, TheSourceHoldsTheStateAndWhoeverHasIt) {
  CollectivePlan three = plan(3, 3, 1);
  three.mutable_members(2)->set_has_state(true);
  EXPECT_FALSE(holds_state(three, 0));
  EXPECT_TRUE(holds_state(three, 1));
  EXPECT_TRUE(holds_state(three, 2));
}

}  // namespace
}  // namespace muster::collective
