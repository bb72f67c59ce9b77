#include <gmock/gmock.h>

#include <functional>
#include <limits>

#include "common/error.h"
#include "tests/unit/trainer/extended.h"
#include "tests/unit/trainer/one_tensor.h"
#include "tests/unit/trainer/ps/joined.h"
#include "trainer/ps/shard/replicated_shard.h"

namespace muster::ps {
namespace {

constexpr size_t kFloats = 3;

// Two processes that each hold a copy of a shard, the first serving it, and the stream between
// them.
class StandbyTest : public testing::Test {
 protected:
  explicit StandbyTest(SyncPolicy policy = SyncPolicy::sync, uint32_t members = 2,
                       bool bfloat16 = false,
                       const compute::OptimizerSpec& optimizer = compute::Adam{})
      : layout_(layout_of(kFloats)),
        optimizer_(compute::Optimizer::create(optimizer, layout_)),
        policy_(policy),
        bfloat16_(bfloat16),
        gradients_(members),
        serving_(shard(), 1),
        standby_(shard(), 2) {
    open(serving_, 1, OpenRequest::INITIALIZE, 0, false);
  }
  std::unique_ptr<Shard> shard() const {
    Shard::Shape shape;
    shape.range = {0, kFloats};
    shape.policy = policy_;
    shape.shards = 2;
    shape.bfloat16 = bfloat16_;
    return std::make_unique<Shard>(shape, *optimizer_, schedule_);
  }
  void open(ReplicatedShard& shard, uint64_t generation, OpenRequest::Content content,
            uint64_t coupling, bool follow) {
    OpenRequest request;
    request.set_generation(generation);
    request.set_content(content);
    request.set_lineage(1);
    request.set_members(static_cast<uint32_t>(gradients_.size()));
    request.set_tickets_per_epoch(10);
    request.set_total_tickets(10);
    request.set_coupling(coupling);
    request.set_follow(follow);
    const auto load = [&](const OpenRequest&) {
      Shard::Content content;
      content.parameters.assign(kFloats, 1.0f);
      content.slots.assign(optimizer_->slot_names().size(), compute::Floats(kFloats));
      return content;
    };
    shard.open(request, load, answers_);
  }
  // Opens the stream, also again after it was cut.
  void connect() {
    serving_.name_standby(serving_.shard().generation(), 2);
    const StandbyFeed::Message greeting = serving_.greet();
    greeting_ = greeting.header.hello();
    deliver(greeting);
  }
  void deliver(const StandbyFeed::Message& message) {
    reply_ = standby_.follow(greeting_, message.header, joined(message.values), answers_);
    of_use_ = serving_.acknowledged(reply_, answers_);
  }
  void pump() {
    while (const auto message = serving_.next_forward()) deliver(*message);
  }
  void couple() {
    connect();
    pump();
    ASSERT_TRUE(standby_.state().whole());
    ASSERT_TRUE(serving_.state().replicated());
  }
  void push(ReplicatedShard& shard, uint32_t rank, uint64_t sequence, uint64_t ticket = 0) {
    PushHeader header;
    header.generation = shard.shard().generation();
    header.rank = rank;
    header.step = shard.shard().step();
    header.sequence = sequence;
    header.ticket = ticket;
    header.sums.rows = 2;
    header.sums.weight = static_cast<double>(header.sums.rows);
    header.sums.loss = 0.25 + rank;
    // The last float's sum depends on the order of addition.
    gradients_[rank] = {0.1f + static_cast<float>(rank), -0.3f,
                        rank % 2 == 1 ? 1.0f
                        : rank == 0   ? 1e8f
                                      : -1e8f};
    shard.shard().push(rank + 1, header, {gradients_[rank], {}}, answers_);
  }
  void push_all(ReplicatedShard& shard) {
    ++sequence_;
    for (size_t rank = gradients_.size(); rank-- > 0;)
      push(shard, static_cast<uint32_t>(rank), sequence_);
  }
  void push_both() { push_all(serving_); }
  void expect_same() { expect_same(serving_.shard(), standby_.shard()); }
  void expect_same(const Shard& a, const Shard& b) {
    EXPECT_EQ(a.step(), b.step());
    EXPECT_EQ(a.optimizer_t(), b.optimizer_t());
    EXPECT_THAT(b.parameters(), testing::ElementsAreArray(a.parameters()));
    for (size_t slot = 0; slot < a.slots().size(); ++slot)
      EXPECT_THAT(b.slots()[slot], testing::ElementsAreArray(a.slots()[slot]));
    EXPECT_EQ(a.sums().of(0).loss, b.sums().of(0).loss);
    if (policy_ == SyncPolicy::sync && a.step() > 0) {
      EXPECT_THAT(b.previous(), testing::ElementsAreArray(a.previous()));
    }
  }

  compute::ParameterLayout layout_;
  std::unique_ptr<compute::Optimizer> optimizer_;
  compute::Schedule schedule_;
  const SyncPolicy policy_;
  const bool bfloat16_;
  std::vector<std::vector<float>> gradients_;
  ReplicatedShard serving_;
  ReplicatedShard standby_;
  ForwardHello greeting_;
  Acknowledgement reply_;
  bool of_use_ = false;
  Shard::Answers answers_;
  uint64_t sequence_ = 0;
};

TEST_F(StandbyTest, HasTheSameBitsWhereverItBegan) {
  push_both();
  push_both();
  couple();
  expect_same();
  push_both();
  pump();
  expect_same();
}

class WholeTensorsStandbyTest : public StandbyTest {
 protected:
  explicit WholeTensorsStandbyTest(const compute::OptimizerSpec& optimizer = compute::Lamb{})
      : StandbyTest(SyncPolicy::sync, 2, false, optimizer) {}
};

class ExtendedStandbyTest : public WholeTensorsStandbyTest {
 protected:
  ExtendedStandbyTest() : WholeTensorsStandbyTest(extended(compute::RmsProp{})) {}
};

TEST_F(WholeTensorsStandbyTest, HasTheSameBitsWhereverItBegan) {
  push_both();
  couple();
  push_both();
  push_both();
  pump();
  expect_same();
  EXPECT_EQ(standby_.shard().step(), 3u);
}

// L2 and the norm are computed from the copy's own parameters, and the average is a third slot.
TEST_F(ExtendedStandbyTest, HasTheSameBitsWhereverItBegan) {
  push_both();
  couple();
  push_both();
  push_both();
  pump();
  ASSERT_EQ(standby_.shard().slots().size(), 3u);
  expect_same();
  EXPECT_NE(standby_.shard().slots()[2][0], standby_.shard().parameters()[0]);
}

TEST_F(StandbyTest, MembersHearOfAStepOnceItsStandbyHasIt) {
  couple();
  answers_.clear();
  push_both();
  EXPECT_TRUE(answers_.empty());
  // A member that comes anew gets no answer either, and the next step is not made.
  PushHeader pull;
  pull.generation = 1;
  pull.sequence = 9;
  pull.newest = true;
  serving_.shard().pull(9, pull, answers_);
  EXPECT_TRUE(answers_.empty());
  pump();
  EXPECT_EQ(answers_.size(), 3u);
}

TEST_F(StandbyTest, OneThatIsOnItsWayKeepsNobodyWaiting) {
  connect();
  const auto state = serving_.next_forward();
  answers_.clear();
  push_both();
  EXPECT_EQ(answers_.size(), 2u);
  deliver(*state);
  pump();
  expect_same();
  EXPECT_TRUE(standby_.state().whole());
}

// The shard goes on meanwhile, in other memory.
TEST_F(StandbyTest, WhatItIsSentStaysAsItWasWhereItLies) {
  push_both();
  connect();
  const auto state = serving_.next_forward();
  ASSERT_EQ(state->values.size(), 4u);  // parameters, those before, and Adam's slots
  EXPECT_EQ(state->values[0]->data(), serving_.shard().parameters().data());
  EXPECT_EQ(state->values[1]->data(), serving_.shard().previous().data());
  EXPECT_EQ(state->values[3]->data(), serving_.shard().slots()[1].data());
  const std::vector<float> before = joined(state->values);
  push_both();
  const auto update = serving_.next_forward();
  ASSERT_EQ(update->values.size(), 1u);
  EXPECT_EQ(update->values[0]->data(), serving_.shard().log().find(1)->gradients.values().data());
  const std::vector<float> sum = joined(update->values);
  deliver(*state);
  deliver(*update);
  for (int step = 0; step < 4; ++step) {
    push_both();
    pump();
  }
  EXPECT_EQ(joined(state->values), before);
  EXPECT_EQ(joined(update->values), sum);
  expect_same();
}

TEST_F(StandbyTest, OneThatIsFarBehindDoes) {
  connect();
  const auto state = serving_.next_forward();
  for (uint64_t step = 0; step < StandbyLog::kMostBehind; ++step) push_both();
  answers_.clear();
  push_both();
  EXPECT_TRUE(answers_.empty());
  deliver(*state);
  pump();
  EXPECT_EQ(answers_.size(), 2u);
  expect_same();
}

TEST_F(StandbyTest, AStepCountsWhereItIsMade) {
  couple();
  push_both();
  pump();
  expect_same();
  EXPECT_EQ(serving_.shard().counts().commits, 1u);
  EXPECT_EQ(standby_.shard().counts().commits, 0u);
}

// Otherwise a ps lost before that would be thought to have another copy, although that does not
// count.
TEST_F(StandbyTest, ItIsSaidToBeThereOnceItKnowsThatItIsWhole) {
  connect();
  deliver(*serving_.next_forward());
  ASSERT_NE(serving_.state().coupling(), 0u);
  EXPECT_FALSE(serving_.state().replicated());
  const auto word = serving_.next_forward();
  ASSERT_TRUE(word && word->header.whole());
  EXPECT_FALSE(serving_.state().replicated());
  deliver(*word);
  EXPECT_TRUE(serving_.state().replicated());
}

TEST_F(StandbyTest, AStreamThatBreaksLosesNothing) {
  couple();
  push_both();
  ASSERT_TRUE(serving_.next_forward());  // and it is lost
  serving_.cut(answers_);
  EXPECT_TRUE(serving_.state().replicated());
  answers_.clear();
  connect();
  EXPECT_TRUE(reply_.resumes());
  pump();
  EXPECT_EQ(answers_.size(), 2u);
  expect_same();
}

TEST_F(StandbyTest, AWholeStandbyIsDroppedByAGenerationOnly) {
  couple();
  serving_.cut(answers_);
  answers_.clear();
  push_both();
  EXPECT_TRUE(answers_.empty());
  serving_.lose_standby();
  EXPECT_TRUE(serving_.state().standby_lost());
  open(serving_, 2, OpenRequest::KEEP, 0, false);
  EXPECT_EQ(answers_.size(), 2u);  // superseded
  answers_.clear();
  push_both();
  EXPECT_EQ(answers_.size(), 2u);
}

// The standby is asked between the updates that lead to the snapshot's step and the next ones.
TEST_F(StandbyTest, ASnapshotIsComparedWithWhatTheStandbyHoldsAtItsStep) {
  using Comparison = ReplicatedShard::Comparison;
  const auto snapshot = [&] {
    SnapshotRequest request;
    request.set_generation(1);
    serving_.snapshot(request);
    WriteRequest write;
    write.set_generation(1);
    write.set_step(serving_.shard().step());
    return serving_.to_write(write);
  };
  const auto compare = [&](const ReplicatedShard::Copy& copy) {
    return serving_.compare(copy, copy.image.digest());
  };
  push_both();
  EXPECT_EQ(compare(snapshot()), Comparison::over);  // there is no second copy
  couple();
  push_both();
  snapshot();
  const ReplicatedShard::Copy same = snapshot();  // it is tried again: the standby is asked once
  push_both();
  EXPECT_EQ(compare(same), Comparison::pending);
  pump();
  EXPECT_EQ(compare(same), Comparison::over);
  EXPECT_FALSE(serving_.state().differs());

  const float* const held = standby_.shard().parameters().data();
  reinterpret_cast<uint32_t&>(const_cast<float&>(held[1])) ^= 1;
  const ReplicatedShard::Copy other = snapshot();
  serving_.cut(answers_);
  EXPECT_EQ(compare(other), Comparison::over);  // nobody answers
  connect();
  const ReplicatedShard::Copy again = snapshot();
  push_both();
  pump();
  EXPECT_EQ(compare(again), Comparison::differs);
  EXPECT_TRUE(serving_.state().differs());
  // Nor is a later state saved, whether or not the standby still answers.
  EXPECT_THROW(snapshot(), Unavailable);
  serving_.cut(answers_);
  EXPECT_EQ(compare(again), Comparison::differs);
  EXPECT_EQ(serving_.shard().counts().differing, 1u);
  EXPECT_EQ(serving_.differences_in_a_row(), 0);  // the group has not gone back yet
  open(serving_, 2, OpenRequest::INITIALIZE, 0, false);
  EXPECT_FALSE(serving_.state().differs());
  EXPECT_EQ(serving_.differences_in_a_row(), 1);
}

TEST_F(StandbyTest, GoesOnInItsPlace) {
  couple();
  const uint64_t coupling = serving_.state().coupling();
  push_both();
  pump();
  open(standby_, 2, OpenRequest::KEEP, 0, false);
  EXPECT_TRUE(standby_.state().serving());
  EXPECT_EQ(standby_.state().step(), 1u);
  // The process that served it before goes on, and is refused.
  push_both();
  answers_.clear();
  pump();
  EXPECT_EQ(reply_.status(), Acknowledgement::SUPERSEDED);
  EXPECT_FALSE(of_use_);
  EXPECT_TRUE(answers_.empty());
  // Nor can a generation be opened on either copy that expects the old coupling.
  EXPECT_THROW(open(serving_, 2, OpenRequest::KEEP, coupling, true), Unavailable);
  EXPECT_THROW(open(standby_, 3, OpenRequest::KEEP, coupling, false), Unavailable);
}

TEST_F(StandbyTest, CopiesStayCoupledThroughGenerations) {
  couple();
  const uint64_t coupling = serving_.state().coupling();
  open(serving_, 2, OpenRequest::KEEP, coupling, false);
  open(standby_, 2, OpenRequest::KEEP, coupling, true);
  push_both();
  pump();
  EXPECT_TRUE(standby_.state().whole());
  expect_same();
}

TEST_F(StandbyTest, WhoWasGreetedInAGenerationThatIsOverIsGreetedAgain) {
  couple();
  const uint64_t coupling = serving_.state().coupling();
  serving_.cut(answers_);
  const StandbyFeed::Message late = serving_.greet();
  greeting_ = late.header.hello();
  open(serving_, 2, OpenRequest::KEEP, coupling, false);
  open(standby_, 2, OpenRequest::KEEP, coupling, true);
  push_both();
  deliver(late);
  EXPECT_EQ(reply_.status(), Acknowledgement::SUPERSEDED);
  EXPECT_FALSE(of_use_);
  serving_.cut(answers_);
  EXPECT_TRUE(answers_.empty());
  EXPECT_FALSE(serving_.state().standby_lost());
  connect();
  EXPECT_TRUE(reply_.resumes());
  pump();
  EXPECT_EQ(answers_.size(), 2u);
  expect_same();
}

TEST_F(StandbyTest, IsOpenedByNobodyWhileItIsNotWhole) {
  connect();
  deliver(*serving_.next_forward());
  EXPECT_FALSE(standby_.state().whole());
  EXPECT_THROW(open(standby_, 2, OpenRequest::KEEP, 0, false), Unavailable);
}

TEST_F(StandbyTest, RefusesWhatIsNonsense) {
  couple();
  Forward message;
  message.set_coupling(serving_.state().coupling());
  message.mutable_update()->set_step(7);
  const std::vector<float> values(kFloats);
  EXPECT_EQ(standby_.follow(greeting_, message, values, answers_).status(),
            Acknowledgement::REJECTED);
  message.mutable_update()->set_step(0);
  EXPECT_EQ(standby_.follow(greeting_, message, {}, answers_).status(), Acknowledgement::REJECTED);
  ForwardHello newer = greeting_;
  newer.mutable_opening()->set_generation(5);
  message.clear_update();
  message.mutable_state()->set_step(3);
  EXPECT_EQ(standby_.follow(newer, message, values, answers_).status(), Acknowledgement::REJECTED);
  expect_same();
  newer.set_incarnation(77);
  EXPECT_EQ(standby_.follow(newer, message, values, answers_).status(),
            Acknowledgement::SUPERSEDED);
}

TEST_F(StandbyTest, RefusesSumsThatNobodyCanHaveComeTo) {
  couple();
  const std::vector<float> values(kFloats);
  Forward message;
  message.set_coupling(serving_.state().coupling());
  for (const int64_t rows : {int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
    message.mutable_update()->mutable_sums()->set_rows(rows);
    EXPECT_EQ(standby_.follow(greeting_, message, values, answers_).status(),
              Acknowledgement::REJECTED);
  }
  const std::vector<float> whole(kFloats * 3);
  const std::vector<std::function<EpochSumsMessage*(ForwardState&)>> places = {
      [](ForwardState& state) { return state.add_sums(); },
      [](ForwardState& state) { return state.add_sums_before(); },
      [](ForwardState& state) { return state.mutable_committed(); }};
  ForwardHello newer = greeting_;
  newer.mutable_opening()->set_generation(5);
  for (const auto& place : places) {
    message.clear_update();
    message.mutable_state()->Clear();
    EpochSumsMessage& sums = *place(*message.mutable_state());
    sums.set_rows(3);
    sums.set_weight(-1);
    EXPECT_EQ(standby_.follow(newer, message, whole, answers_).status(), Acknowledgement::REJECTED);
  }
  expect_same();
  message.mutable_state()->Clear();
  EXPECT_EQ(standby_.follow(newer, message, whole, answers_).status(), Acknowledgement::OK);
}

TEST_F(StandbyTest, AnAcknowledgementGoesNoFurtherThanWhatWasSent) {
  connect();
  deliver(*serving_.next_forward());
  for (int step = 0; step < 3; ++step) push_both();
  ASSERT_TRUE(serving_.next_forward());  // the first
  Acknowledgement reply;
  reply.set_step(3);
  EXPECT_TRUE(serving_.acknowledged(reply, answers_));
  EXPECT_EQ(serving_.shard().log().acknowledged(), 1u);
  const auto next = serving_.next_forward();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->header.update().step(), 1u);
}

class SummedStandbyTest : public StandbyTest {
 protected:
  explicit SummedStandbyTest(bool bfloat16 = false)
      : StandbyTest(SyncPolicy::sync, 4, bfloat16), alone_(shard(), 3) {
    open(alone_, 1, OpenRequest::INITIALIZE, 0, false);
  }
  void expect_as_alone() {
    couple();
    for (int step = 0; step < 3; ++step) {
      push_all(serving_);
      push_all(alone_);
      pump();
      expect_same();
      expect_same(serving_.shard(), alone_.shard());
    }
  }
  ReplicatedShard alone_;
};

TEST_F(SummedStandbyTest, HasTheBitsOfAShardWithoutOne) {
  expect_as_alone();
}

class RoundedStandbyTest : public SummedStandbyTest {
 protected:
  RoundedStandbyTest() : SummedStandbyTest(true) {}
};

TEST_F(RoundedStandbyTest, RoundsNoSum) {
  expect_as_alone();
}

class AsynchronousStandbyTest : public StandbyTest {
 protected:
  AsynchronousStandbyTest() : StandbyTest(SyncPolicy::async) {}
};

TEST_F(AsynchronousStandbyTest, RefusesMoreWorkThanAnybodyCanHaveHandedOut) {
  couple();
  Forward message;
  message.set_coupling(serving_.state().coupling());
  message.mutable_update()->set_next_ticket(11);  // of 10
  const std::vector<float> values(kFloats);
  EXPECT_EQ(standby_.follow(greeting_, message, values, answers_).status(),
            Acknowledgement::REJECTED);
  expect_same();
}

TEST_F(AsynchronousStandbyTest, KnowsWhichWorkIsDone) {
  for (const uint32_t rank : {0u, 1u}) {
    PushHeader pull;
    pull.generation = 1;
    pull.rank = rank;
    pull.sequence = 1;
    serving_.shard().pull(rank + 1, pull, answers_);
  }
  push(serving_, 0, 2, 0);
  couple();
  answers_.clear();
  push(serving_, 0, 3, 2);
  push(serving_, 1, 2, 1);
  EXPECT_TRUE(answers_.empty());
  pump();
  EXPECT_EQ(answers_.size(), 2u);
  expect_same();
  // Other shards may not have a push that one shard has: a ticket is done only once its member has
  // asked for work after it.
  EXPECT_THAT(standby_.shard().tickets().outstanding(), testing::IsSupersetOf({1, 2}));
  EXPECT_THAT(standby_.shard().tickets().outstanding(), testing::Not(testing::Contains(0)));
}

// What shard 0 alone may have is handed out once more, and nothing else.
TEST_F(AsynchronousStandbyTest, HandsOutInItsPlaceWhatIsNotDone) {
  const auto first_ticket = [&](ReplicatedShard& shard) {
    PushHeader pull;
    pull.generation = shard.shard().generation();
    pull.sequence = ++sequence_;
    answers_.clear();
    shard.shard().pull(1, pull, answers_);
    return answers_.back().header.ticket;
  };
  const auto ticket_after = [&](ReplicatedShard& shard, uint64_t ticket) {
    answers_.clear();
    push(shard, 0, ++sequence_, ticket);
    pump();
    return answers_.back().header.ticket;
  };
  couple();
  EXPECT_EQ(first_ticket(serving_), 0u);
  for (const uint64_t ticket : {0, 1, 2, 3}) EXPECT_EQ(ticket_after(serving_, ticket), ticket + 1);
  EXPECT_EQ(standby_.shard().tickets().next(), 4u);
  open(standby_, 2, OpenRequest::KEEP, 0, false);
  std::vector<uint64_t> rest;
  for (auto next = first_ticket(standby_); next; next = ticket_after(standby_, *next))
    rest.push_back(*next);
  EXPECT_THAT(rest, testing::ElementsAre(3, 4, 5, 6, 7, 8, 9));
  first_ticket(standby_);
  EXPECT_TRUE(standby_.shard().tickets().finished());
}

}  // namespace
}  // namespace muster::ps
