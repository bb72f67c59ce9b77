#include "trainer/ps/shard/shard.h"

#include <gmock/gmock.h>

#include <deque>

#include "tests/unit/trainer/one_tensor.h"

namespace muster::ps {
namespace {

using testing::ElementsAre;
using Answers = Shard::Answers;

// Two rows of one float each: shard s of 2 holds row s. SGD with rate 1 and a mean gradient, so
// that p -= sum / rows.
class ShardTest : public testing::Test {
 protected:
  ShardTest()
      : layout_(layout_of(2)), optimizer_(compute::Optimizer::create(compute::Sgd{}, layout_)) {
    schedule_.learning_rate = 1.0;
  }

  Shard& make(SyncPolicy policy, int members, int shard = 0, Tickets tickets = {}) {
    Shard::Shape shape;
    shape.shard = shard;
    shape.range = {0, 2};
    shape.policy = policy;
    return begun(shape, members, std::move(tickets));
  }
  Shard& begun(const Shard::Shape& shape, int members, Tickets tickets) {
    Shard& made = shards_.emplace_back(shape, *optimizer_, schedule_);
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
    header.sums.weight = static_cast<double>(header.sums.rows);
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
  std::deque<Shard> shards_;
  uint64_t sequence_ = 0;
  std::deque<std::vector<float>> memories_;  // of the sessions
};

TEST_F(ShardTest, SyncAppliesWhenEveryMemberHasPushedDividedByAllRows) {
  Shard& shard = make(SyncPolicy::sync, 2);
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

// In float32, 2^24 + 1 is 2^24, but 2^24 + (1 + 1) is exact.
TEST_F(ShardTest, SyncSumsInAFixedTreeWhateverTheOrderOfArrival) {
  constexpr float kBig = 16777216;
  for (const bool reversed : {false, true}) {
    Shard& shard = make(SyncPolicy::sync, 7);
    const float gradients[7] = {kBig, 1, 1, 1, -kBig, 1, 1};
    for (uint32_t i = 0; i < 7; ++i) {
      const uint32_t rank = reversed ? 6 - i : i;
      push(shard, rank + 1, header(rank, 0, rank == 0), {gradients[rank], 0});
    }
    // ((big + 1) + (1 + 1)) + ((-big + 1) + 1) = (big + 2) + (-big + 2)
    EXPECT_FLOAT_EQ(shard.parameters()[0], 10.0f - 4.0f) << reversed;
  }
}

TEST_F(ShardTest, WhatIsSentAsBfloat16IsTakenAndDeliveredSo) {
  Shard::Shape shape;
  shape.range = {0, 2};
  shape.bfloat16 = true;
  Shard& shard = begun(shape, 1, {});
  const std::vector<float> gradients = {1.001f, 2};  // the first one rounds to 1
  std::vector<float> delivered(2);
  PushHeader pushed = header(0, 0, 1024);
  pushed.sequence = 1;
  Answers answers;
  shard.push(1, pushed, {gradients, delivered}, answers);
  EXPECT_THAT(shard.parameters(), ElementsAre(10.0f - 1.0f / 1024, 20.0f - 2.0f / 1024));
  EXPECT_THAT(delivered, ElementsAre(10, 20));
}

TEST_F(ShardTest, SyncSumsInRankOrderWhateverTheOrderOfArrival) {
  const float big = 1e8f;
  std::vector<float> results[2];
  for (const bool reversed : {false, true}) {
    Shard& shard = make(SyncPolicy::sync, 3);
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
  Shard& shard = make(SyncPolicy::sync, 2);
  push(shard, 1, header(0, 0, 2), {2, 4});
  push(shard, 2, header(1, 0, 0), {0, 0});
  EXPECT_THAT(shard.parameters(), ElementsAre(9, 18));
  EXPECT_EQ(shard.step(), 1u);
}

TEST_F(ShardTest, SyncCommitsAStepWithoutAnyRowsAndChangesNothing) {
  Shard& shard = make(SyncPolicy::sync, 1);
  push(shard, 1, header(0, 0, 0), {0, 0});
  EXPECT_EQ(shard.step(), 1u);
  EXPECT_EQ(shard.optimizer_t(), 0u);
  EXPECT_THAT(shard.parameters(), ElementsAre(10, 20));
}

// A process that was taken for lost may only be slow, and its push may come after its successor's.
TEST_F(ShardTest, SyncIgnoresARepeatedPushAndAnswersWhoeverSentOne) {
  Shard& shard = make(SyncPolicy::sync, 2);
  push(shard, 1, header(0, 0, 1), {1, 1});
  push(shard, 5, header(0, 0, 1), {1, 1});  // rank 0 again, from another stream
  const Answers answers = push(shard, 2, header(1, 0, 1), {1, 1});
  EXPECT_THAT(shard.parameters(), ElementsAre(9, 19));
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0].session, 1u);
  EXPECT_EQ(answers[1].session, 5u);
  EXPECT_EQ(shard.counts().duplicates, 1u);
}

TEST_F(ShardTest, SyncAnswersAPushOfTheStepJustCommittedWithItsResult) {
  Shard& shard = make(SyncPolicy::sync, 1);
  push(shard, 1, header(0, 0, 1, 0.25), {1, 1});
  const Answers answers = push(shard, 2, header(0, 0, 1, 0.25), {1, 1});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].header.step, 1u);
  EXPECT_DOUBLE_EQ(answers[0].header.sums.loss, 0.25);
  EXPECT_THAT(shard.parameters(), ElementsAre(9, 19));
  EXPECT_EQ(shard.counts().duplicates, 1u);
}

// The first push counts. The second one is compared with it, and an alarm says that they differ.
TEST_F(ShardTest, SyncSoundsAnAlarmForARepeatedPushWithOtherContent) {
  struct Case {
    PushHeader header;
    std::vector<float> gradients;
    bool same;
  };
  PushHeader of_another_ticket = header(0, 0, 1, 0.25);
  of_another_ticket.ticket = 1;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Case cases[] = {{header(0, 0, 1, 0.25), {nan, 1}, true},
                        {header(0, 0, 1, 0.25), {nan, 2}, false},
                        {header(0, 0, 2, 0.25), {nan, 1}, false},
                        {header(0, 0, 1, 0.5), {nan, 1}, false},
                        {of_another_ticket, {nan, 1}, false}};
  for (const Case& one : cases) {
    Shard& shard = make(SyncPolicy::sync, 2);
    push(shard, 1, header(0, 0, 1, 0.25), {nan, 1});
    push(shard, 5, one.header, one.gradients);
    EXPECT_EQ(shard.counts().duplicates, one.same);
    EXPECT_EQ(shard.counts().conflicting, !one.same);
    push(shard, 2, header(1, 0, 1), {1, 1});
    EXPECT_FLOAT_EQ(shard.parameters()[1], 19);
  }
}

TEST_F(ShardTest, SyncSoundsAnAlarmForOtherSumsOfAStepThatIsCommitted) {
  Shard& shard = make(SyncPolicy::sync, 1);
  push(shard, 1, header(0, 0, 1, 0.25), {1, 1});
  push(shard, 2, header(0, 0, 1, 0.5), {1, 1});
  EXPECT_EQ(shard.counts().duplicates, 0u);
  EXPECT_EQ(shard.counts().conflicting, 1u);
}

// Whoever shares memory with the shard sends floats that others have rounded already.
TEST_F(ShardTest, WhatIsSentAsBfloat16IsComparedSo) {
  Shard::Shape shape;
  shape.range = {0, 2};
  shape.bfloat16 = true;
  const float unrounded = 1 + 1.0f / 1024;
  for (const float other : {1.0f, 2.0f}) {
    Shard& shard = begun(shape, 2, {});
    push(shard, 1, header(0, 0, 1), {unrounded, 1});
    push(shard, 2, header(0, 0, 1), {other, 1});
    EXPECT_EQ(shard.counts().conflicting, other == 2.0f);
  }
}

TEST_F(ShardTest, SyncDropsAndCountsAStalePush) {
  Shard& shard = make(SyncPolicy::sync, 1);
  push(shard, 1, header(0, 0, 1), {1, 1});
  push(shard, 1, header(0, 1, 1), {1, 1});
  const Answers answers = push(shard, 2, header(0, 0, 1), {50, 50});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].header.step, 2u);
  EXPECT_EQ(shard.counts().stale, 1u);
  EXPECT_THAT(shard.parameters(), ElementsAre(8, 18));
}

TEST_F(ShardTest, SyncRefusesAPushFromTheFuture) {
  Shard& shard = make(SyncPolicy::sync, 1);
  const Answers answers = push(shard, 1, header(0, 3, 1), {1, 1});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].header.status, Status::superseded);
  EXPECT_EQ(shard.step(), 0u);
}

TEST_F(ShardTest, SyncServesTheParametersOfTheStepBefore) {
  Shard& shard = make(SyncPolicy::sync, 1);
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
  Shard& shard = make(SyncPolicy::sync, 2);
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
  Shard& shard = make(SyncPolicy::sync, 2);
  const Answers answers = push(shard, 1, header(2, 0, 1), {1, 1});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].header.status, Status::rejected);
  EXPECT_THAT(answers[0].header.message, testing::HasSubstr("rank below 2"));
}

TEST_F(ShardTest, TheScheduleFollowsTheCommittedStep) {
  schedule_.shape = compute::Piecewise{{0}, {1.0, 0.5}};
  Shard& shard = make(SyncPolicy::sync, 1);
  push(shard, 1, header(0, 0, 1), {1, 0});
  EXPECT_THAT(shard.parameters(), ElementsAre(9, 20));
  push(shard, 1, header(0, 1, 1), {1, 0});
  EXPECT_THAT(shard.parameters(), ElementsAre(8.5, 20));
}

TEST_F(ShardTest, AsyncAppliesEachPushAtOnceDividedByItsOwnRows) {
  Shard& shard = make(SyncPolicy::async, 2, 0, Tickets(0, 3, {}));
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
  // Member 1 sees the pushes applied since its last reply: both. No work is left, but ticket 2 is
  // not done: the member must wait.
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

// An epoch has two tickets: the sums of the third ticket are the next epoch's, whenever it comes.
TEST_F(ShardTest, SumsLossesByEpochWhateverTheOrder) {
  const auto push_ticket = [&](Shard& shard, uint64_t ticket, double loss) {
    PushHeader pushed = header(0, shard.step(), 1, loss);
    pushed.ticket = ticket;
    push(shard, 1, pushed, {0, 0});
  };
  Shard& async = make(SyncPolicy::async, 1, 0, Tickets(0, 4, {}, 2));
  for (const uint64_t ticket : {0, 2, 1, 3}) push_ticket(async, ticket, 1.0 + ticket);
  EXPECT_DOUBLE_EQ(async.sums().of(0).loss, 1.0 + 2.0);
  EXPECT_DOUBLE_EQ(async.sums().of(1).loss, 3.0 + 4.0);
  Shard& sync = make(SyncPolicy::sync, 1, 0, Tickets(0, 4, {}, 2));
  for (const uint64_t ticket : {0, 1, 2}) push_ticket(sync, ticket, 1.0 + ticket);
  EXPECT_DOUBLE_EQ(sync.sums().of(0).loss, 1.0 + 2.0);
  EXPECT_DOUBLE_EQ(sync.sums().of(1).loss, 3.0);
  EXPECT_EQ(sync.sums_before().of(1).rows, 0);
  EXPECT_EQ(sync.sums_before().of(0).rows, 2);
}

TEST_F(ShardTest, AsyncHandsOutTheTicketsOfTheDeadAgain) {
  Shard& shard = make(SyncPolicy::async, 2, 0, Tickets(0, 1, {}));
  EXPECT_EQ(*pull(shard, 1, header(0, 0, 0))[0].header.ticket, 0u);
  EXPECT_TRUE(pull(shard, 2, header(1, 0, 0)).empty());
  Answers answers;
  shard.detach(1, answers);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].session, 2u);
  EXPECT_EQ(*answers[0].header.ticket, 0u);
}

TEST_F(ShardTest, AsyncIgnoresARepeatedPush) {
  Shard& shard = make(SyncPolicy::async, 1, 0, Tickets(0, 5, {}));
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
  EXPECT_EQ(shard.counts().conflicting, 0u);
  repeated.sums.loss = 0.5;
  std::vector<float> gradients = {1, 1};
  Answers answers;
  shard.push(1, repeated, {gradients, {}}, answers);
  EXPECT_EQ(shard.counts().duplicates, 1u);
  EXPECT_EQ(shard.counts().conflicting, 1u);
}

TEST_F(ShardTest, AsyncOtherShardsFollowTheStepOfShardZero) {
  schedule_.shape = compute::Piecewise{{4}, {1.0, 0.5}};
  Shard& shard = make(SyncPolicy::async, 1, 1);
  const Answers pulled = pull(shard, 1, header(0, 0, 0));
  ASSERT_EQ(pulled.size(), 1u);
  EXPECT_FALSE(pulled[0].header.ticket);
  push(shard, 1, header(0, 4, 1), {1, 0});
  EXPECT_THAT(shard.parameters(), ElementsAre(9, 20));
  push(shard, 1, header(0, 5, 1), {1, 0});
  EXPECT_THAT(shard.parameters(), ElementsAre(8.5, 20));
}

// With 1 of 3 members as backup, rank 0 and the first of the others to come make the step.
class BackupTest : public ShardTest {
 protected:
  Shard& make_backed(int members, uint32_t backups, int shard = 0, int shards = 1) {
    Shard::Shape shape;
    shape.shard = shard;
    shape.range = {0, 2};
    shape.shards = shards;
    shape.backup_workers = backups;
    return begun(shape, members, {});
  }
};

TEST_F(BackupTest, CommitsWithoutTheLastAndDividesByTheRowsOfThoseItHas) {
  Shard& shard = make_backed(3, 1);
  EXPECT_TRUE(push(shard, 1, header(0, 0, 1, 1.0), {1, 2}).empty());
  const Answers answers = push(shard, 3, header(2, 0, 3, 5.0), {7, 2});
  ASSERT_EQ(answers.size(), 2u);
  for (const auto& answer : answers) {
    EXPECT_EQ(answer.header.step, 1u);
    EXPECT_EQ(answer.header.contributors, Contributors(0b101));
    EXPECT_EQ(answer.header.sums.rows, 4);
    EXPECT_DOUBLE_EQ(answer.header.sums.loss, 6.0);
  }
  EXPECT_THAT(shard.parameters(), ElementsAre(8, 19));
  EXPECT_EQ(shard.counts().left_out, 1u);
}

TEST_F(BackupTest, AnswersWhoWasPassedOverWithTheNewestAndDropsItsGradients) {
  Shard& shard = make_backed(3, 1);
  for (uint64_t step = 0; step < 2; ++step) {
    push(shard, 1, header(0, step, 1), {1, 1});
    push(shard, 2, header(1, step, 1), {1, 1});
  }
  EXPECT_THAT(shard.parameters(), ElementsAre(8, 18));
  const Answers answers = push(shard, 3, header(2, 0, 1), {100, 100});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].header.status, Status::ok);
  EXPECT_EQ(answers[0].header.step, 2u);
  EXPECT_EQ(answers[0].header.contributors, Contributors(0b011));
  EXPECT_EQ(answers[0].values, Shard::Answer::Values::current);
  EXPECT_THAT(shard.parameters(), ElementsAre(8, 18));
  EXPECT_EQ(shard.counts().stale, 1u);
  EXPECT_EQ(shard.counts().left_out, 2u);
  // This holds for the step just committed too: the push is no duplicate of one that contributed.
  push(shard, 1, header(0, 2, 1), {0, 0});
  push(shard, 3, header(2, 2, 1), {0, 0});
  EXPECT_EQ(push(shard, 2, header(1, 2, 1), {9, 9})[0].header.contributors, Contributors(0b101));
  EXPECT_EQ(shard.counts().stale, 2u);
  push(shard, 4, header(2, 2, 1), {0, 0});
  EXPECT_EQ(shard.counts().duplicates, 1u);
}

TEST_F(BackupTest, NeverCommitsWithoutRankZero) {
  Shard& shard = make_backed(3, 2);
  EXPECT_TRUE(push(shard, 2, header(1, 0, 1), {1, 1}).empty());
  EXPECT_TRUE(push(shard, 3, header(2, 0, 1), {1, 1}).empty());
  EXPECT_EQ(push(shard, 1, header(0, 0, 2), {2, 2}).size(), 3u);
  EXPECT_THAT(shard.parameters(), ElementsAre(9, 19));
  EXPECT_EQ(push(shard, 1, header(0, 1, 1), {1, 1}).size(), 1u);
  EXPECT_EQ(shard.counts().left_out, 2u);
}

TEST_F(BackupTest, RemembersAcrossGenerationsWhoContributed) {
  Shard& shard = make_backed(3, 1);
  push(shard, 1, header(0, 0, 1), {1, 1});
  push(shard, 2, header(1, 0, 1), {1, 1});
  Answers answers;
  shard.begin(2, 3, {}, answers);
  for (const uint32_t rank : {1u, 2u}) {
    PushHeader again = header(rank, 0, 1);
    again.generation = 2;
    EXPECT_EQ(push(shard, rank + 4, again, {1, 1})[0].header.contributors, Contributors(0b011));
  }
  EXPECT_EQ(shard.counts().duplicates, 1u);
  EXPECT_EQ(shard.counts().stale, 1u);
}

// A shard other than shard 0. after_step_0() is a pull of the parameters after step 0 that names
// the contributors chosen by shard 0.
class FollowingTest : public BackupTest {
 protected:
  static PushHeader after_step_0(uint32_t rank, unsigned long contributors) {
    PushHeader wanted = header(rank, 1, 0);
    wanted.pull = true;
    wanted.contributors = contributors;
    return wanted;
  }
  void hold(Shard& shard, uint32_t rank, std::vector<float> gradients) {
    const Answers answers = push(shard, rank + 1, header(rank, 0, 1), std::move(gradients));
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].header.status, Status::ok);
    EXPECT_EQ(answers[0].values, Shard::Answer::Values::none);
    EXPECT_EQ(answers[0].header.step, shard.step());
  }
};

TEST_F(FollowingTest, OtherShardsHoldPushesUntilToldWhomShardZeroMadeTheStepOf) {
  Shard& shard = make_backed(4, 2, 1, 2);
  for (const uint32_t rank : {3u, 1u, 2u, 0u}) hold(shard, rank, {3, rank == 1 ? 9.0f : 0.0f});
  EXPECT_EQ(shard.step(), 0u);
  const Answers answers = pull(shard, 1, after_step_0(0, 0b1101));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].header.step, 1u);
  EXPECT_EQ(answers[0].values, Shard::Answer::Values::current);
  EXPECT_THAT(shard.parameters(), ElementsAre(7, 20));
  EXPECT_EQ(shard.counts().left_out, 1u);
  // The contributors are named again, and the step is pulled by a member that does not know them.
  EXPECT_EQ(pull(shard, 4, after_step_0(3, 0b1101))[0].header.step, 1u);
  EXPECT_EQ(pull(shard, 2, after_step_0(1, 0))[0].header.step, 1u);
  hold(shard, 2, {50, 50});
  EXPECT_THAT(shard.parameters(), ElementsAre(7, 20));
}

// A member's push that shard 0 has taken was given to the other shards before.
TEST_F(FollowingTest, NobodyIsWaitedForWhoHasPushedAndDied) {
  Shard& shard = make_backed(3, 1, 1, 2);
  Answers answers;
  for (const uint32_t rank : {0u, 2u}) {
    hold(shard, rank, {2, 2});
    shard.detach(rank + 1, answers);
    memories_.back().assign(2, 99.0f);  // as the session's memory goes
  }
  EXPECT_TRUE(answers.empty());
  ASSERT_EQ(pull(shard, 2, after_step_0(1, 0b101)).size(), 1u);
  EXPECT_THAT(shard.parameters(), ElementsAre(8, 18));
}

TEST_F(FollowingTest, WhatIsHeldOutlivesTheGenerationButNotTheState) {
  for (const bool reloaded : {false, true}) {
    Shard& shard = make_backed(3, 1, 1, 2);
    for (const uint32_t rank : {0u, 2u}) hold(shard, rank, {2, 2});
    if (reloaded) shard.load({{10, 20}, {}, 0, 0, {}});
    Answers answers;
    shard.begin(2, 3, {}, answers);
    PushHeader wanted = after_step_0(1, 0b101);
    wanted.generation = 2;
    EXPECT_EQ(pull(shard, 2, wanted).empty(), reloaded);
    EXPECT_EQ(shard.step(), reloaded ? 0u : 1u);
  }
}

TEST_F(FollowingTest, WhoIsToldBeforeThePushesAreThereWaitsForThem) {
  Shard& shard = make_backed(3, 1, 1, 2);
  EXPECT_TRUE(pull(shard, 2, after_step_0(1, 0)).empty());
  EXPECT_TRUE(pull(shard, 3, after_step_0(2, 0b101)).empty());
  hold(shard, 0, {1, 1});
  const Answers answers = push(shard, 4, header(2, 0, 1), {1, 1});
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0].session, 4u);
  EXPECT_EQ(answers[0].values, Shard::Answer::Values::none);
  for (const size_t waited : {1u, 2u}) {
    EXPECT_EQ(answers[waited].header.step, 1u);
    EXPECT_EQ(answers[waited].values, Shard::Answer::Values::current);
  }
  PushHeader wanted = after_step_0(1, 0b101);
  wanted.step = 3;
  EXPECT_EQ(pull(shard, 2, wanted)[0].header.status, Status::superseded);
}

TEST_F(FollowingTest, RejectsContributorsThatCannotBe) {
  Shard& shard = make_backed(3, 1, 1, 2);
  const auto rejection = [&](unsigned long contributors) {
    const Answers answers = pull(shard, 1, after_step_0(0, contributors));
    EXPECT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers.at(0).header.status, Status::rejected);
    return answers.at(0).header.message;
  };
  for (const unsigned long contributors : {0b001ul, 0b110ul, 0b1011ul})
    EXPECT_THAT(rejection(contributors), testing::HasSubstr("expected 2 to 3 contributors"));
  EXPECT_TRUE(pull(shard, 2, after_step_0(1, 0b011)).empty());
  EXPECT_THAT(rejection(0b101), testing::HasSubstr("named before"));
}

// Two members, one of them fast. The comments give their clocks.
class BoundedTest : public ShardTest {
 protected:
  Shard& make_bounded(uint64_t staleness, int shards = 1) {
    Shard::Shape shape;
    shape.range = {0, 2};
    shape.policy = SyncPolicy::bounded_staleness;
    shape.shards = shards;
    shape.max_staleness = staleness;
    return begun(shape, 2, Tickets(0, 100, {}));
  }
  // Returns the ticket that comes back, or nothing while the member has to wait.
  std::optional<uint64_t> work(Shard& shard, uint64_t session, uint64_t ticket) {
    PushHeader with = header(static_cast<uint32_t>(session - 1), 0, 1);
    with.ticket = ticket;
    const Answers answers = push(shard, session, with, {1, 0});
    for (const auto& answer : answers)
      if (answer.session == session) return answer.header.ticket;
    return std::nullopt;
  }
};

TEST_F(BoundedTest, WhoIsTooFarAheadWaitsForTheSlowest) {
  Shard& shard = make_bounded(2);
  EXPECT_EQ(*pull(shard, 1, header(0, 0, 0))[0].header.ticket, 0u);
  EXPECT_EQ(*pull(shard, 2, header(1, 0, 0))[0].header.ticket, 1u);
  EXPECT_EQ(work(shard, 1, 0), 2u);            // 1 : 0
  EXPECT_EQ(work(shard, 1, 2), 3u);            // 2 : 0
  EXPECT_EQ(work(shard, 1, 3), std::nullopt);  // 3 : 0
  EXPECT_THAT(shard.parameters(), ElementsAre(7, 20));
  PushHeader slow = header(1, 0, 1);
  slow.ticket = 1;
  const Answers answers = push(shard, 2, slow, {1, 0});  // 3 : 1
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].session, 2u);
  EXPECT_EQ(*answers[0].header.ticket, 4u);
  EXPECT_EQ(answers[1].session, 1u);
  EXPECT_EQ(*answers[1].header.ticket, 5u);
  // Both answers have the parameters after all the updates.
  EXPECT_EQ(answers[1].values, Shard::Answer::Values::current);
  EXPECT_EQ(answers[1].header.step, 4u);
  // Staleness of the pushes in their order: 0, 0, 0, 3.
  EXPECT_EQ(shard.counts().staleness, 3u);
  EXPECT_THAT(shard.counts().by_staleness, ElementsAre(3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0));
}

TEST_F(BoundedTest, ZeroIsOneRoundAfterTheOther) {
  Shard& shard = make_bounded(0);
  pull(shard, 1, header(0, 0, 0));
  pull(shard, 2, header(1, 0, 0));
  EXPECT_EQ(work(shard, 1, 0), std::nullopt);
  EXPECT_EQ(work(shard, 2, 1), 2u);
  EXPECT_EQ(work(shard, 2, 2), std::nullopt);  // 2 : 1
}

TEST_F(BoundedTest, TheDeadHoldNobodyUpAndWhoComesBeginsBesideTheSlowest) {
  Shard& shard = make_bounded(0);
  pull(shard, 1, header(0, 0, 0));
  pull(shard, 2, header(1, 0, 0));
  EXPECT_EQ(work(shard, 1, 0), std::nullopt);
  Answers answers;
  shard.detach(2, answers);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(*answers[0].header.ticket, 1u);  // the dead one's
  EXPECT_EQ(*pull(shard, 3, header(1, 0, 0))[0].header.ticket, 2u);
  PushHeader first = header(0, 0, 1);
  first.ticket = 1;
  EXPECT_TRUE(push(shard, 1, first, {1, 0}).empty());  // 2 : 1
}

TEST_F(BoundedTest, AMemberThatIsReplacedWhileItSleepsHoldsNobodyUp) {
  Shard& shard = make_bounded(0);
  pull(shard, 1, header(0, 0, 0));
  pull(shard, 2, header(1, 0, 0));
  EXPECT_EQ(work(shard, 1, 0), std::nullopt);
  const Answers answers = pull(shard, 3, header(1, 0, 0));  // 2's rank
  ASSERT_GE(answers.size(), 1u);
  EXPECT_EQ(*answers[0].header.ticket, 1u);  // what 2 had
}

TEST_F(ShardTest, AsyncCountsTheUpdatesBetweenAPushsParametersAndItsApplication) {
  Shard& shard = make(SyncPolicy::async, 3, 0, Tickets(0, 9, {}));
  for (uint32_t rank = 0; rank < 3; ++rank) pull(shard, rank + 1, header(rank, 0, 0));
  const auto staleness = [&](uint64_t session) {
    const uint64_t before = shard.counts().staleness;
    PushHeader with = header(static_cast<uint32_t>(session - 1), 0, 1);
    with.ticket = session - 1;
    push(shard, session, with, {1, 0});
    return shard.counts().staleness - before;
  };
  EXPECT_EQ(staleness(1), 0u);
  EXPECT_EQ(staleness(2), 1u);
  EXPECT_EQ(staleness(1), 1u);
  EXPECT_EQ(staleness(3), 3u);
  EXPECT_EQ(staleness(3), 0u);
  EXPECT_THAT(shard.counts().by_staleness, ElementsAre(2, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0));
}

TEST(ShardCountsTest, EachBucketOfStalenessIsTwiceAsWideAsTheOneBefore) {
  Shard::Counts counts;
  for (const uint64_t staleness : {0, 1, 2, 3, 4, 1023, 1024, 1000000})
    counts.add_staleness(staleness);
  EXPECT_THAT(counts.by_staleness, ElementsAre(1, 1, 2, 1, 0, 0, 0, 0, 0, 0, 1, 2));
  counts += counts;
  EXPECT_EQ(counts.by_staleness.back(), 4u);
  EXPECT_EQ(counts.pushes, 16u);
}

// Another shard may not have had the push when its member dies: the whole ticket is done again.
TEST_F(ShardTest, AsyncOfSeveralShardsHoldsWorkForDoneOnlyWhenItsMemberAsksForMore) {
  Shard::Shape shape;
  shape.range = {0, 2};
  shape.policy = SyncPolicy::async;
  shape.shards = 2;
  Shard& shard = begun(shape, 2, Tickets(0, 2, {}));
  EXPECT_EQ(*pull(shard, 1, header(0, 0, 0))[0].header.ticket, 0u);
  EXPECT_EQ(*push(shard, 1, header(0, 0, 1), {1, 0})[0].header.ticket, 1u);
  EXPECT_THAT(shard.tickets().outstanding(), ElementsAre(0, 1));
  PushHeader second = header(0, 1, 1, 7.0);
  second.ticket = 1;
  // No work is left: the member must ask again, and with that request ticket 1 is done.
  const Answers answers = push(shard, 1, second, {1, 0});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_FALSE(answers[0].header.ticket);
  EXPECT_FALSE(answers[0].header.finished);
  EXPECT_THAT(shard.tickets().outstanding(), ElementsAre(1));
  const Answers last = pull(shard, 1, header(0, 2, 0));
  ASSERT_EQ(last.size(), 1u);
  EXPECT_TRUE(last[0].header.finished);
  EXPECT_DOUBLE_EQ(last[0].header.sums.loss, 7.0);
}

TEST_F(ShardTest, AsyncOfSeveralShardsHandsOutAgainWhatShardZeroAloneMayHave) {
  Shard::Shape shape;
  shape.range = {0, 2};
  shape.policy = SyncPolicy::async;
  shape.shards = 2;
  Shard& shard = begun(shape, 2, Tickets(0, 1, {}));
  pull(shard, 1, header(0, 0, 0));
  push(shard, 1, header(0, 0, 1), {1, 0});
  EXPECT_TRUE(pull(shard, 2, header(1, 0, 0)).empty());
  Answers answers;
  shard.detach(1, answers);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(*answers[0].header.ticket, 0u);
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

TEST(TicketsTest, ACopyIsNotToldOfMoreThanMembersHold) {
  Tickets tickets(5, uint64_t{1} << 63, {});
  EXPECT_FALSE(tickets.may_follow(uint64_t{1} << 62));
  EXPECT_FALSE(Tickets(5, 8, {}).may_follow(9));
  ASSERT_TRUE(tickets.may_follow(7));
  tickets.follow(7);
  EXPECT_THAT(tickets.outstanding(), ElementsAre(5, 6));
  EXPECT_TRUE(tickets.may_follow(3));
  EXPECT_TRUE(tickets.may_follow(7 + Tickets::kMostAtOnce - 2));
  EXPECT_FALSE(tickets.may_follow(7 + Tickets::kMostAtOnce - 1)) << "two are open already";
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
