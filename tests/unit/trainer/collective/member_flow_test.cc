#include "trainer/collective/member_flow.h"

#include <gmock/gmock.h>

#include "common/error.h"
#include "common/exit_code.h"

namespace muster::collective {
namespace {

using Asked = MemberFlow::Next;

constexpr uint64_t kOurs = 11;
constexpr uint64_t kOther = 12;

// We are the second of two members, and the first one brings the state.
CollectivePlan plan_of(uint64_t generation, std::vector<uint64_t> members = {kOther, kOurs}) {
  CollectivePlan plan;
  plan.set_generation(generation);
  for (const uint64_t incarnation : members) plan.add_members()->set_incarnation(incarnation);
  return plan;
}

GroupView view_of(GroupView::Phase phase, uint64_t running, const CollectivePlan& plan) {
  GroupView view;
  view.set_phase(phase);
  view.set_generation(running);
  *view.mutable_collective() = plan;
  return view;
}

GroupView running(uint64_t generation) {
  return view_of(GroupView::RUNNING, generation, plan_of(generation));
}

GroupView forming(uint64_t generation) {
  return view_of(GroupView::FORMING, generation - 1, plan_of(generation));
}

// We have entered generation 3, failed in 4 and prepared for 6.
MemberFlow experienced() {
  MemberFlow flow(kOurs);
  flow.entered(3);
  flow.failed(4);
  flow.prepared(6, "endpoint");
  return flow;
}

TEST(MemberFlowTest, SaysWhatAViewAsksFor) {
  struct Case {
    std::string what;
    GroupView view;
    Asked next;
  };
  const std::vector<uint64_t> others = {kOther, kOther + 1};
  const std::vector<Case> cases = {
      {"no plan", {}, Asked::wait},
      {"finished", view_of(GroupView::FINISHED, 3, plan_of(3)), Asked::end},
      {"failed", view_of(GroupView::FAILED, 0, {}), Asked::end},
      {"the generation that we are in", running(3), Asked::wait},
      {"an earlier one", running(2), Asked::wait},
      {"one that we failed in", running(4), Asked::wait},
      {"a new one", forming(5), Asked::prepare},
      {"a new one without us", view_of(GroupView::FORMING, 3, plan_of(5, others)), Asked::wait},
      {"one that runs without us", view_of(GroupView::RUNNING, 6, plan_of(6, others)), Asked::wait},
      {"the prepared one before it runs", forming(6), Asked::wait},
      {"the one before still runs", view_of(GroupView::RUNNING, 5, plan_of(6)), Asked::wait},
      {"the prepared one", running(6), Asked::enter},
      {"one after the prepared one", forming(7), Asked::prepare}};
  const MemberFlow flow = experienced();
  for (const Case& one : cases) EXPECT_EQ(flow.next(one.view), one.next) << one.what;
}

TEST(MemberFlowTest, ReportsWhatHasHappened) {
  MemberFlow flow = experienced();
  EXPECT_TRUE(flow.is_inside());
  EXPECT_EQ(flow.report().generation(), 3u);
  EXPECT_EQ(flow.report().failed(), 4u);
  EXPECT_EQ(flow.report().prepared(), 6u);
  EXPECT_EQ(flow.report().endpoint(), "endpoint");
  EXPECT_FALSE(flow.report().settled());
  PositionMessage position;
  position.set_step(9);
  flow.settled(position);
  EXPECT_FALSE(flow.is_inside());
  EXPECT_TRUE(flow.report().settled());
  EXPECT_EQ(flow.report().position().step(), 9u);
  flow.entered(6);
  EXPECT_TRUE(flow.is_inside());
  EXPECT_FALSE(flow.report().settled());
  EXPECT_EQ(flow.generation(), 6u);
  EXPECT_FALSE(MemberFlow(kOurs).is_inside());
}

TEST(MemberFlowTest, AStateThatWeNoLongerHaveIsOutdated) {
  CollectivePlan plan = plan_of(4);
  plan.set_content(CollectivePlan::KEEP);
  plan.mutable_position()->set_step(7);
  MemberFlow inside(kOurs);
  inside.entered(3);
  EXPECT_FALSE(inside.is_outdated(plan, 8)) << "it is sent to us";
  plan.mutable_members(1)->set_has_state(true);
  EXPECT_TRUE(inside.is_outdated(plan, 8));
  EXPECT_FALSE(inside.is_outdated(plan, 7));
  EXPECT_TRUE(MemberFlow(kOurs).is_outdated(plan, 7)) << "we have none";
  plan.mutable_members(1)->set_has_state(false);
  plan.set_source(1);
  EXPECT_TRUE(inside.is_outdated(plan, 8));
  for (const auto content : {CollectivePlan::RESTORE, CollectivePlan::INITIALIZE}) {
    plan.set_content(content);
    EXPECT_FALSE(inside.is_outdated(plan, 8));
  }
}

TEST(MemberFlowTest, OnlyMemoryThatIsRefusedTwiceInARowIsReported) {
  MemberFlow flow(kOurs);
  const auto refuse = [&](uint64_t source) {
    flow.memory_refused(running(1), plan_of(1, {source, kOurs}));
    return flow.report().unshared();
  };
  EXPECT_EQ(refuse(kOther), 0u);
  EXPECT_EQ(refuse(kOther + 1), 0u) << "of another source";
  flow.entered(1);
  EXPECT_EQ(refuse(kOther + 1), 0u) << "we were in a generation between the two";
  flow.memory_refused(forming(1), plan_of(1, {kOther + 1, kOurs}));
  EXPECT_EQ(flow.report().unshared(), 0u) << "the group has left this generation";
  EXPECT_EQ(refuse(kOther + 1), kOther + 1);
}

TEST(MemberFlowTest, OnlyLinksThatFailTwiceInARowAreReported) {
  MemberFlow flow(kOurs);
  flow.link_failed(running(1), plan_of(1));
  flow.linked();
  flow.link_failed(running(2), plan_of(2));
  flow.link_failed(forming(3), plan_of(3));
  EXPECT_FALSE(flow.report().unlinked());
  flow.link_failed(running(4), plan_of(4));
  EXPECT_TRUE(flow.report().unlinked());
}

TEST(MemberFlowTest, ASessionEndsAtTheStepThatWeKnowOrAtTheNext) {
  MemberFlow flow(kOurs);
  flow.entered(5);
  EXPECT_FALSE(flow.made_step_after(7, 7));
  EXPECT_TRUE(flow.made_step_after(7, 8));
  for (const uint64_t found : {6, 9}) {
    try {
      flow.made_step_after(7, found);
      ADD_FAILURE() << found;
    } catch (const Invalid& error) {
      EXPECT_EQ(error.exit_code(), kProtocol);
      EXPECT_EQ(error.what(), "generation 5: expected a state of step 7 or 8, found step " +
                                  std::to_string(found));
    }
  }
}

TEST(MemberFlowTest, CountsComparisonsInWhichOurStateIsOdd) {
  const std::vector<int> ours = {1}, theirs = {0}, both = {0, 1};
  MemberFlow flow(kOurs);
  flow.entered(3);
  EXPECT_FALSE(flow.is_spoiled());
  flow.compared(plan_of(3), ours);
  EXPECT_TRUE(flow.is_spoiled());
  EXPECT_EQ(flow.report().differed(), 3u);
  flow.compared(plan_of(4), both);
  EXPECT_EQ(flow.odd_in_a_row(), 2);
  EXPECT_EQ(flow.report().differed(), 4u);
  flow.entered(5);
  EXPECT_FALSE(flow.is_spoiled());
  EXPECT_EQ(flow.odd_in_a_row(), 2) << "entering alone does not count";
  flow.compared(plan_of(5), {});
  EXPECT_EQ(flow.odd_in_a_row(), 0);
  EXPECT_FALSE(flow.is_spoiled());
  flow.compared(plan_of(5), ours);
  flow.compared(plan_of(5), theirs);
  EXPECT_EQ(flow.odd_in_a_row(), 0);
  EXPECT_TRUE(flow.is_spoiled());
}

TEST(MemberFlowTest, AMemberLeavesOnceTheGroupGoesOnWithoutItOrHasEnded) {
  EXPECT_FALSE(lets_go({}, kOurs));
  EXPECT_FALSE(lets_go(running(3), kOurs));
  EXPECT_TRUE(lets_go(running(3), kOurs + 5));
  EXPECT_TRUE(lets_go(forming(3), kOurs + 5));
  EXPECT_TRUE(lets_go(view_of(GroupView::FINISHED, 3, plan_of(3)), kOurs));
  EXPECT_TRUE(lets_go(view_of(GroupView::FAILED, 3, plan_of(3)), kOurs));
  GroupView stopping = running(3);
  stopping.set_stopping(true);
  EXPECT_TRUE(lets_go(stopping, kOurs));
}

TEST(MemberFlowTest, AGenerationRunsInItsPhaseOnly) {
  EXPECT_TRUE(runs(running(3), 3));
  EXPECT_FALSE(runs(running(3), 2));
  EXPECT_FALSE(runs(view_of(GroupView::FORMING, 3, plan_of(3)), 3));
}

}  // namespace
}  // namespace muster::collective
