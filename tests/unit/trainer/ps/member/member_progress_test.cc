#include "trainer/ps/member/member_progress.h"

#include <gtest/gtest.h>

#include "trainer/ps/shard/messages.h"

namespace muster::ps {
namespace {

constexpr uint64_t kStepsPerEpoch = 4;
constexpr uint64_t kWholeEpochs = 3;

compute::LossSums sums_of(double loss) {
  compute::LossSums sums;
  sums.loss = loss;
  sums.rows = 1;
  return sums;
}

Exchange::Result result_of(uint64_t step, double loss) {
  Exchange::Result result;
  result.step = step;
  result.sums = sums_of(loss);
  return result;
}

// Generation `generation` counts from `base`, and knows the sums up to `step`, of the first epoch.
GroupView view_of(uint64_t generation, uint64_t base, uint64_t step, double loss) {
  GroupView view;
  view.set_generation(generation);
  view.mutable_base()->set_step(base);
  view.mutable_base()->set_epoch(base / kStepsPerEpoch);
  view.set_step(step);
  checkpoint::EpochSums sums;
  sums.add(0, sums_of(loss));
  to_messages(sums, *view.mutable_sums());
  return view;
}

MemberProgress make(bool sync) {
  return MemberProgress({sync,
                         [](uint64_t step, checkpoint::Position& position) {
                           uint64_t epoch = position.epoch;
                           for (; position.step < step; ++position.step)
                             epoch = position.step / kStepsPerEpoch;
                           position.epoch = position.step / kStepsPerEpoch;
                           return epoch;
                         },
                         kWholeEpochs});
}

TEST(MemberProgressTest, ANewGenerationTellsTheSumsOfItsSteps) {
  struct Case {
    std::string what;
    uint64_t known;    // the step of the generation's sums
    uint64_t aligned;  // the step of the parameters
    double expected;
  };
  const std::vector<Case> cases = {{"the same step", 2, 2, 10},
                                   {"a step that was committed since", 2, 3, 17},
                                   {"the last step of the epoch", 3, 4, 17}};
  for (const Case& one : cases) {
    MemberProgress progress = make(/*sync=*/true);
    checkpoint::Position position;
    position.step = one.known;  // of another generation
    position.sums.add(0, sums_of(99));
    progress.aligned(view_of(5, 1, one.known, 10), result_of(one.aligned, 7), position);
    EXPECT_EQ(position.step, one.aligned) << one.what;
    EXPECT_EQ(position.epoch, one.aligned / kStepsPerEpoch) << one.what;
    EXPECT_EQ(position.sums.of(0).loss, one.expected) << one.what;
  }
}

TEST(MemberProgressTest, InTheSameGenerationTheMembersOwnSumsGoOn) {
  MemberProgress progress = make(/*sync=*/true);
  checkpoint::Position position;
  const GroupView view = view_of(5, 0, 2, 10);
  progress.aligned(view, result_of(2, 0), position);
  progress.stepped(result_of(3, 3), 0, position);
  EXPECT_EQ(position.sums.of(0).loss, 13);
  progress.aligned(view, result_of(3, 3), position);
  EXPECT_EQ(position.sums.of(0).loss, 13) << "the push was lost";
  progress.aligned(view, result_of(4, 4), position);
  EXPECT_EQ(position.sums.of(0).loss, 17) << "only the answer was lost";
  EXPECT_EQ(position.step, 4u);
  EXPECT_EQ(position.epoch, 1u);
  progress.stepped(result_of(5, 5), 1, position);
  EXPECT_EQ(position.sums.of(1).loss, 5);
  progress.aligned(view_of(6, 0, 2, 10), result_of(2, 0), position);
  EXPECT_EQ(position.sums.of(0).loss, 10) << "a new generation began further back";
  EXPECT_EQ(position.step, 2u);
}

TEST(MemberProgressTest, AsynchronousWorkGoesOnUntilTheShardsSayThatItIsFinished) {
  MemberProgress progress = make(/*sync=*/false);
  checkpoint::Position position;
  EXPECT_FALSE(progress.ticket());
  Exchange::Result aligned = result_of(6, 1);
  aligned.ticket = 8;
  progress.aligned(view_of(5, 4, 6, 10), aligned, position);
  EXPECT_EQ(progress.ticket(), 8u);
  EXPECT_EQ(position.step, 6u);
  EXPECT_EQ(position.epoch, 1u) << "of the base";
  EXPECT_EQ(position.sums.of(0).loss, 10);
  EXPECT_EQ(position.sums.of(1).loss, 1);
  Exchange::Result last = result_of(9, 2);
  last.ticket = 9;
  last.finished = true;
  progress.stepped(last, 2, position);
  EXPECT_FALSE(progress.ticket());
  EXPECT_EQ(position.step, 9u);
  EXPECT_EQ(position.epoch, kWholeEpochs);
  EXPECT_EQ(position.sums.of(1).loss, 3);
}

TEST(MemberProgressTest, AnAsynchronousMemberDoesNotGoBackToAnEarlierEpochThanItsSums) {
  MemberProgress progress = make(/*sync=*/false);
  checkpoint::Position position;
  GroupView view = view_of(5, 0, 6, 10);
  checkpoint::EpochSums sums;
  sums.add(2, sums_of(10));
  view.clear_sums();
  to_messages(sums, *view.mutable_sums());
  progress.aligned(view, result_of(6, 1), position);
  EXPECT_EQ(position.epoch, 2u);
  EXPECT_EQ(position.sums.of(2).loss, 11);
}

}  // namespace
}  // namespace muster::ps
