#include "trainer/ps/shard.h"

#include <gmock/gmock.h>

#include <deque>

namespace muster::ps {
namespace {

using testing::ElementsAre;
using Answers = Shard::Answers;

// Two rows of one float each: shard s of 2 holds row s. SGD with rate 1 and a mean gradient, so
// that p -= sum / rows.
class ShardTest : public testing::Test {
 protected:
  ShardTest()
      : layout_({tensor()}), optimizer_(compute::Optimizer::create(compute::Sgd{}, layout_)) {
    schedule_.learning_rate = 1.0;
  }

  static compute::ParameterTensor tensor() {
    compute::ParameterTensor tensor;
    tensor.name = "w";
    tensor.shape = {2};
    tensor.count = 2;
    return tensor;
  }

  Shard make(Shard::Policy policy, int members, int shard = 0, Tickets tickets = {}) {
    Shard::Shape shape;
    shape.shard = shard;
    shape.range = {0, 2};
    shape.policy = policy;
    Shard made(shape, *optimizer_, schedule_);
    Shard::Content content;
    content.parameters = {10, 20};
    made.load(std::move(content));
    Answers none;
    made.begin(1, members, std::move(tickets), none);
    EXPECT_TRUE(none.empty());
    return made;
  }

  static PushHeader header(uint32_t rank, uint64_t step, int64_t rows, double loss = 0) {
    PushHeader header;
    header.generation = 1;
    header.rank = rank;
    header.step = step;
    header.sums.rows = rows;
    header.sums.loss = loss;
    return header;
  }

  Answers push(Shard& shard, uint64_t session, PushHeader header, std::vector<float> gradients) {
    header.sequence = ++sequence_;
    Answers answers;
    memories_.push_back(std::move(gradients));
    shard.push(session, header, {memories_.back(), {}}, answers);
    return answers;
  }
  Answers pull(Shard& shard, uint64_t session, PushHeader header) {
    header.sequence = ++sequence_;
    Answers answers;
    shard.pull(session, header, answers);
    return answers;
  }

  compute::ParameterLayout layout_;
  std::unique_ptr<compute::Optimizer> optimizer_;
  compute::Schedule schedule_;
  uint64_t sequence_ = 0;
  std::deque<std::vector<float>> memories_;  // of the sessions
};

TEST_F(ShardTest, SyncAppliesWhenEveryMemberHasPushedDividedByAllRows) {
  Shard shard = make(Shard::Policy::sync, 2);
  EXPECT_TRUE(push(shard, 7, header(0, 0, 3, 1.5), {4, 0}).empty());
  EXPECT_THAT(shard.parameters(), ElementsAre(10, 20));
  const Answers answers = push(shard, 8, header(1, 0, 1, 0.5), {0, 8});
  EXPECT_THAT(shard.parameters(), ElementsAre(9, 18));
  EXPECT_THAT(shard.previous(), ElementsAre(10, 20));
  ASSERT_EQ(answers.size(), 2u);
  for (const auto& answer : answers) {
    EXPECT_EQ(answer.header.status, Status::ok);
    EXPECT_EQ(answer.header.step, 1u);
    EXPECT_EQ(answer.header.sums.rows, 4);
    EXPECT_DOUBLE_EQ(answer.header.sums.loss, 2.0);
    EXPECT_EQ(answer.values, Shard::Answer::Values::current);
  }
  EXPECT_EQ(answers[0].session, 7u);
  EXPECT_EQ(answers[1].session, 8u);
}

TEST_F(ShardTest, SyncSumsInRankOrderWhateverTheOrderOfArrival) {
  const float big = 1e8f;
  std::vector<float> results[2];
  for (const bool reversed : {false, true}) {
    Shard shard = make(Shard::Policy::sync, 3);
    const std::vector<float> gradients[3] = {{big, 0}, {-big, 0}, {3, 0}};
    for (int i = 0; i < 3; ++i) {
      const auto rank = static_cast<uint32_t>(reversed ? 2 - i : i);
      push(shard, rank + 1, header(rank, 0, 1), gradients[rank]);
    }
    results[reversed].assign(shard.parameters().begin(), shard.parameters().end());
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_FLOAT_EQ(results[0][0], 9.0f);
}

TEST_F(ShardTest, SyncTakesARemainderStepInWhichSomebodyHasNoRows) {
  Shard shard = make(Shard::Policy::sync, 2);
  push(shard, 1, header(0, 0, 2), {2, 4});
  push(shard, 2, header(1, 0, 0), {0, 0});
  EXPECT_THAT(shard.parameters(), ElementsAre(9, 18));
  EXPECT_EQ(shard.step(), 1u);
}

TEST_F(ShardTest, SyncCommitsAStepWithoutAnyRowsAndChangesNothing) {
  Shard shard = make(Shard::Policy::sync, 1);
  push(shard, 1, header(0, 0, 0), {0, 0});
  EXPECT_EQ(shard.step(), 1u);
  EXPECT_EQ(shard.optimizer_t(), 0u);
  EXPECT_THAT(shard.parameters(), ElementsAre(10, 20));
}

// A process that was taken for lost may be slow only, and its push may come after its successor's.
TEST_F(ShardTest, SyncIgnoresARepeatedPushAndAnswersWhoeverSentOne) {
  Shard shard = make(Shard::Policy::sync, 2);
  push(shard, 1, header(0, 0, 1), {1, 1});
  push(shard, 5, header(0, 0, 1), {100, 100});  // rank 0 again, from another stream
  const Answers answers = push(shard, 2, header(1, 0, 1), {1, 1});
  EXPECT_THAT(shard.parameters(), ElementsAre(9, 19));
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0].session, 1u);
  EXPECT_EQ(answers[1].session, 5u);
  EXPECT_EQ(shard.counts().duplicates, 1u);
}

TEST_F(ShardTest, SyncAnswersAPushOfTheStepJustCommittedWithItsResult) {
  Shard shard = make(Shard::Policy::sync, 1);
  push(shard, 1, header(0, 0, 1, 0.25), {1, 1});
  const Answers answers = push(shard, 2, header(0, 0, 1, 0.25), {1, 1});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].header.step, 1u);
  EXPECT_DOUBLE_EQ(answers[0].header.sums.loss, 0.25);
  EXPECT_THAT(shard.parameters(), ElementsAre(9, 19));
  EXPECT_EQ(shard.counts().duplicates, 1u);
}

TEST_F(ShardTest, SyncDropsAndCountsAStalePush) {
  Shard shard = make(Shard::Policy::sync, 1);
  push(shard, 1, header(0, 0, 1), {1, 1});
  push(shard, 1, header(0, 1, 1), {1, 1});
  const Answers answers = push(shard, 2, header(0, 0, 1), {50, 50});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].header.step, 2u);
  EXPECT_EQ(shard.counts().stale, 1u);
  EXPECT_THAT(shard.parameters(), ElementsAre(8, 18));
}

TEST_F(ShardTest, SyncRefusesAPushFromTheFuture) {
  Shard shard = make(Shard::Policy::sync, 1);
  const Answers answers = push(shard, 1, header(0, 3, 1), {1, 1});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].header.status, Status::superseded);
  EXPECT_EQ(shard.step(), 0u);
}

TEST_F(ShardTest, SyncServesTheParametersOfTheStepBefore) {
  Shard shard = make(Shard::Policy::sync, 1);
  PushHeader before = header(0, 0, 0);
  before.pull = true;
  push(shard, 1, header(0, 0, 1), {1, 1});
  Answers answers = pull(shard, 2, before);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].values, Shard::Answer::Values::previous);
  EXPECT_EQ(answers[0].header.step, 0u);
  push(shard, 1, header(0, 1, 1), {1, 1});
  answers = pull(shard, 2, before);
  EXPECT_EQ(answers[0].header.status, Status::superseded);
}

TEST_F(ShardTest, ANewGenerationSupersedesWhoWaitsAndWhoComesLate) {
  Shard shard = make(Shard::Policy::sync, 2);
  push(shard, 1, header(0, 0, 1), {1, 1});
  Answers answers;
  shard.begin(2, 2, {}, answers);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].session, 1u);
  EXPECT_EQ(answers[0].header.status, Status::superseded);
  answers = push(shard, 2, header(1, 0, 1), {1, 1});
  EXPECT_EQ(answers[0].header.status, Status::superseded);
  EXPECT_THAT(shard.parameters(), ElementsAre(10, 20));
  EXPECT_EQ(shard.counts().superseded, 1u);
}

TEST_F(ShardTest, RejectsARankThatTheGroupDoesNotHave) {
  Shard shard = make(Shard::Policy::sync, 2);
  const Answers answers = push(shard, 1, header(2, 0, 1), {1, 1});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].header.status, Status::rejected);
  EXPECT_THAT(answers[0].header.message, testing::HasSubstr("rank below 2"));
}

TEST_F(ShardTest, TheScheduleFollowsTheCommittedStep) {
  schedule_.shape = compute::Piecewise{{1}, {1.0, 0.5}};
  Shard shard = make(Shard::Policy::sync, 1);
  push(shard, 1, header(0, 0, 1), {1, 0});
  EXPECT_THAT(shard.parameters(), ElementsAre(9, 20));
  push(shard, 1, header(0, 1, 1), {1, 0});
  EXPECT_THAT(shard.parameters(), ElementsAre(8.5, 20));
}

TEST_F(ShardTest, AsyncAppliesEachPushAtOnceDividedByItsOwnRows) {
  Shard shard = make(Shard::Policy::async, 2, 0, Tickets(0, 3, {}));
  EXPECT_EQ(*pull(shard, 1, header(0, 0, 0))[0].header.ticket, 0u);
  EXPECT_EQ(*pull(shard, 2, header(1, 0, 0))[0].header.ticket, 1u);
  PushHeader first = header(0, 0, 2, 3.0);
  const Answers answers = push(shard, 1, first, {2, 2});
  EXPECT_THAT(shard.parameters(), ElementsAre(9, 19));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(*answers[0].header.ticket, 2u);
  EXPECT_EQ(answers[0].header.step, 1u);
  PushHeader second = header(1, 0, 1, 5.0);
  second.ticket = 1;
  const Answers others = push(shard, 2, second, {1, 1});
  // Member 1 sees what was applied since its last reply: both pushes. No work is left, but ticket 2
  // is not done: it must wait.
  EXPECT_TRUE(others.empty());
  EXPECT_THAT(shard.parameters(), ElementsAre(8, 18));
  PushHeader third = header(0, 1, 1, 7.0);
  third.ticket = 2;
  const Answers last = push(shard, 1, third, {0, 0});
  ASSERT_EQ(last.size(), 2u);
  for (const auto& answer : last) EXPECT_TRUE(answer.header.finished);
  EXPECT_DOUBLE_EQ(last[0].header.sums.loss, 5.0 + 7.0);
  EXPECT_DOUBLE_EQ(last[1].header.sums.loss, 3.0 + 5.0 + 7.0);
}

// Two tickets an epoch: the sums of the third are the next epoch's, whenever it comes.
TEST_F(ShardTest, SumsLossesByEpochWhateverTheOrder) {
  const auto push_ticket = [&](Shard& shard, uint64_t ticket, double loss) {
    PushHeader pushed = header(0, shard.step(), 1, loss);
    pushed.ticket = ticket;
    push(shard, 1, pushed, {0, 0});
  };
  Shard async = make(Shard::Policy::async, 1, 0, Tickets(0, 4, {}, 2));
  for (const uint64_t ticket : {0, 2, 1, 3}) push_ticket(async, ticket, 1.0 + ticket);
  EXPECT_DOUBLE_EQ(async.sums().of(0).loss, 1.0 + 2.0);
  EXPECT_DOUBLE_EQ(async.sums().of(1).loss, 3.0 + 4.0);
  Shard sync = make(Shard::Policy::sync, 1, 0, Tickets(0, 4, {}, 2));
  for (const uint64_t ticket : {0, 1, 2}) push_ticket(sync, ticket, 1.0 + ticket);
  EXPECT_DOUBLE_EQ(sync.sums().of(0).loss, 1.0 + 2.0);
  EXPECT_DOUBLE_EQ(sync.sums().of(1).loss, 3.0);
  EXPECT_EQ(sync.sums_before().of(1).rows, 0);
  EXPECT_EQ(sync.sums_before().of(0).rows, 2);
}

TEST_F(ShardTest, AsyncHandsOutTheTicketsOfTheDeadAgain) {
  Shard shard = make(Shard::Policy::async, 2, 0, Tickets(0, 1, {}));
  EXPECT_EQ(*pull(shard, 1, header(0, 0, 0))[0].header.ticket, 0u);
  EXPECT_TRUE(pull(shard, 2, header(1, 0, 0)).empty());
  Answers answers;
  shard.detach(1, answers);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].session, 2u);
  EXPECT_EQ(*answers[0].header.ticket, 0u);
}

TEST_F(ShardTest, AsyncIgnoresARepeatedPush) {
  Shard shard = make(Shard::Policy::async, 1, 0, Tickets(0, 5, {}));
  pull(shard, 1, header(0, 0, 0));
  PushHeader repeated = header(0, 0, 1);
  repeated.sequence = 9;
  for (int i = 0; i < 2; ++i) {
    std::vector<float> gradients = {1, 1};
    Answers answers;
    shard.push(1, repeated, {gradients, {}}, answers);
  }
  EXPECT_THAT(shard.parameters(), ElementsAre(9, 19));
  EXPECT_EQ(shard.counts().duplicates, 1u);
}

TEST_F(ShardTest, AsyncOtherShardsFollowTheStepOfShardZero) {
  schedule_.shape = compute::Piecewise{{5}, {1.0, 0.5}};
  Shard shard = make(Shard::Policy::async, 1, 1);
  const Answers pulled = pull(shard, 1, header(0, 0, 0));
  ASSERT_EQ(pulled.size(), 1u);
  EXPECT_FALSE(pulled[0].header.ticket);
  push(shard, 1, header(0, 4, 1), {1, 0});
  EXPECT_THAT(shard.parameters(), ElementsAre(9, 20));
  push(shard, 1, header(0, 5, 1), {1, 0});
  EXPECT_THAT(shard.parameters(), ElementsAre(8.5, 20));
}

TEST(TicketsTest, AreHandedOutOnceEachAndFinishWhenAllAreDone) {
  Tickets tickets(0, 2, {});
  EXPECT_EQ(*tickets.take(1), 0u);
  EXPECT_EQ(*tickets.take(2), 1u);
  EXPECT_FALSE(tickets.take(1));
  EXPECT_FALSE(tickets.finished());
  tickets.done(0);
  EXPECT_THAT(tickets.outstanding(), ElementsAre(1));
  tickets.done(1);
  EXPECT_TRUE(tickets.finished());
}

TEST(TicketsTest, ThoseOutstandingInACheckpointComeFirst) {
  Tickets tickets(5, 6, {2, 3});
  EXPECT_EQ(*tickets.take(1), 2u);
  EXPECT_EQ(*tickets.take(1), 3u);
  EXPECT_EQ(*tickets.take(1), 5u);
  EXPECT_FALSE(tickets.take(1));
}

TEST(TicketsTest, ASlowHolderWhoseTicketWasReleasedMayStillDoIt) {
  Tickets tickets(0, 1, {});
  tickets.take(1);
  tickets.release(1);
  tickets.done(0);
  EXPECT_TRUE(tickets.finished());
}

}  // namespace
}  // namespace muster::ps
