#include "trainer/ps/group/ps_formation.h"

#include <gmock/gmock.h>

#include "common/error.h"
#include "tests/unit/trainer/compute/sums.h"
#include "tests/unit/trainer/one_tensor.h"
#include "trainer/ps/shard/replicated_shard.h"

namespace muster::ps {
namespace {

using Next = PsFormation::Next;

struct Holding {
  uint64_t generation = 0;
  uint64_t lineage = 0;
  uint64_t step = 0;
  uint64_t incarnation = 1;
  bool differs = false;  // its second copy does
};

ShardState state_of(const Holding& holding, size_t shard) {
  ShardState state;
  state.set_shard(static_cast<uint32_t>(shard));
  state.set_serving(true);
  state.set_generation(holding.generation);
  state.set_lineage(holding.lineage);
  state.set_step(holding.step);
  state.set_differs(holding.differs);
  return state;
}

group::PeerRegistry registry_of(const std::vector<Holding>& shards) {
  group::PeerRegistry::Expected expected;
  expected.shards = static_cast<int>(shards.size());
  group::PeerRegistry registry(expected);
  for (size_t i = 0; i < shards.size(); ++i) {
    PeerMessage message;
    message.mutable_hello()->set_role("ps");
    message.mutable_hello()->set_address("10.0.0.1:2222");
    message.mutable_hello()->set_index(static_cast<uint32_t>(i));
    message.mutable_hello()->set_incarnation(shards[i].incarnation);
    *message.add_shards() = state_of(shards[i], i);
    EXPECT_EQ(registry.admit(i + 1, message.hello(), {}), "");
    EXPECT_TRUE(registry.heard(i + 1, message, {}));
  }
  return registry;
}

std::vector<OpenReply> replies_of(const std::vector<Holding>& shards) {
  std::vector<OpenReply> replies(shards.size());
  for (size_t i = 0; i < shards.size(); ++i) *replies[i].mutable_state() = state_of(shards[i], i);
  return replies;
}

// Returns a formation that has claimed generation 9 and looked at the shards' reports.
PsFormation formed(const std::vector<Holding>& shards, bool sync = true) {
  PsFormation formation(static_cast<int>(shards.size()), sync, {});
  EXPECT_EQ(formation.next(), Next::claim);
  formation.claimed(9);
  EXPECT_EQ(formation.next(), Next::fence);
  formation.fenced();
  EXPECT_EQ(formation.next(), Next::gather);
  formation.look(registry_of(shards));
  return formation;
}

struct Case {
  const char* name;
  std::vector<Holding> shards;
  bool keeps;
};

class FormationTest : public testing::TestWithParam<Case> {};

TEST_P(FormationTest, KeepsWhatIsOfOneLineage) {
  const PsFormation formation = formed(GetParam().shards);
  EXPECT_EQ(formation.next(), GetParam().keeps ? Next::open : Next::choose);
  if (GetParam().keeps) {
    EXPECT_EQ(formation.request().content(), OpenRequest::KEEP);
    EXPECT_EQ(formation.request().lineage(), GetParam().shards[0].lineage);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, FormationTest,
    testing::Values(Case{"fresh", {{}, {}}, false},
                    Case{"chief_returned", {{3, 1, 40}, {3, 1, 40}}, true},
                    Case{"mid_commit", {{3, 1, 40}, {3, 1, 41}}, true},
                    Case{"reports_of_other_times", {{3, 1, 40}, {3, 1, 77}}, true},
                    Case{"one_empty", {{3, 1, 40}, {}}, false},
                    Case{"half_opened_by_keeping", {{4, 1, 40}, {3, 1, 40}}, true},
                    Case{"two_copies_differ", {{3, 1, 40, 1, true}, {3, 1, 40}}, false},
                    Case{"half_opened_by_restoring", {{4, 4, 30}, {3, 1, 40}}, false}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(FormationTest, StartsFromTheNewestCheckpointOrFromTheBeginning) {
  PsFormation formation = formed({{}, {}});
  PositionMessage position;
  position.set_step(30);
  formation.chosen(PsFormation::Checkpoint{"checkpoints/ckpt-30-g3", position});
  EXPECT_EQ(formation.request().content(), OpenRequest::RESTORE);
  EXPECT_EQ(formation.request().checkpoint(), "checkpoints/ckpt-30-g3");
  EXPECT_EQ(formation.request().position().step(), 30u);
  PsFormation first = formed({{}});
  first.chosen(std::nullopt);
  EXPECT_EQ(first.request().content(), OpenRequest::INITIALIZE);
}

// The storage has been emptied, so it does not know the shards' generations.
TEST(FormationTest, ClaimsAboveWhatTheShardsHold) {
  const PsFormation formation = formed({{12, 1, 40}, {11, 1, 40}});
  EXPECT_EQ(formation.next(), Next::claim);
  EXPECT_EQ(formation.above(), 12u);
}

TEST(FormationTest, TellsTheSumsOfTheStepThatAllHold) {
  PsFormation formation = formed({{3, 1, 40}, {3, 1, 41}});
  std::vector<OpenReply> replies(2);
  for (size_t shard = 0; shard < 2; ++shard) {
    ShardState& state = *replies[shard].mutable_state();
    state.set_step(41 - shard);
    state.add_sums()->set_rows(41 - static_cast<int64_t>(shard));
    state.add_sums_before()->set_rows(40 - static_cast<int64_t>(shard));
  }
  formation.opened(replies);
  EXPECT_EQ(formation.step(), 40u);
  GroupView view;
  formation.announce(view);
  EXPECT_EQ(view.sums(0).rows(), 40);
  std::swap(replies[0], replies[1]);
  PsFormation other = formed({{3, 1, 40}, {3, 1, 41}});
  other.opened(replies);
  other.announce(view);
  EXPECT_EQ(view.sums(0).rows(), 40);
}

TEST(FormationTest, WhatTurnsOutToBeTornIsRestored) {
  const std::vector<Holding> shards = {{3, 1, 40}, {3, 1, 42}};
  PsFormation formation = formed(shards);
  formation.opened(replies_of(shards));
  EXPECT_EQ(formation.next(), Next::claim);
  formation.claimed(10);
  formation.fenced();
  formation.look(registry_of(shards));
  EXPECT_EQ(formation.next(), Next::choose);
}

TEST(FormationTest, AsynchronousShardsCountEachForThemselves) {
  const std::vector<Holding> shards = {{3, 1, 40}, {3, 1, 47}};
  PsFormation formation = formed(shards, /*sync=*/false);
  formation.opened(replies_of(shards));
  EXPECT_EQ(formation.next(), Next::announce);
}

class WatchingTest : public testing::Test {
 protected:
  WatchingTest() : formation_(formed({{3, 1, 40}, {3, 1, 40}})) {
    formation_.opened(replies_of({{9, 1, 40}, {9, 1, 40}}));
    GroupView view;
    formation_.announce(view);
    EXPECT_EQ(view.generation(), 9u);
    EXPECT_EQ(view.phase(), GroupView::RUNNING);
    formation_.announced();
  }
  Next after(const std::vector<Holding>& shards) {
    formation_.look(registry_of(shards));
    return formation_.next();
  }
  PsFormation formation_;
};

TEST_F(WatchingTest, GoesOnWhileTheShardsAreTheSame) {
  EXPECT_EQ(after({{9, 1, 50}, {9, 1, 51}}), Next::watch);
}

TEST_F(WatchingTest, OpensTheNextWhenAShardComesBackWithoutItsState) {
  EXPECT_EQ(after({{9, 1, 50}, {0, 0, 0, /*incarnation=*/2}}), Next::claim);
}

TEST_F(WatchingTest, OpensTheNextWhenTheTwoCopiesOfAShardDiffer) {
  EXPECT_EQ(after({{9, 1, 50}, {9, 1, 50, 1, /*differs=*/true}}), Next::claim);
}

TEST_F(WatchingTest, KnowsThatItWasReplaced) {
  EXPECT_FALSE(formation_.superseded_by(9));
  EXPECT_TRUE(formation_.superseded_by(10));
}

TEST_F(WatchingTest, NoGenerationIsAnnouncedOnceTheJobHasEnded) {
  GroupView view;
  view.set_phase(GroupView::FINISHED);
  formation_.announce(view);
  EXPECT_EQ(view.phase(), GroupView::FINISHED);
}

// The reports of two ps on two shards with two copies each: those of ps 1 on both shards and, if it
// is present, those of ps 0.
struct Standbys {
  bool ps_0 = true;
  bool whole = true;  // the copies that are not served
  uint64_t generation = 9;
  uint64_t coupling = 5;
  uint64_t incarnation_0 = 1;
};

group::PeerRegistry registry_of(const Standbys& standbys) {
  group::PeerRegistry::Expected expected;
  expected.shards = 2;
  group::PeerRegistry registry(expected);
  for (uint32_t ps = standbys.ps_0 ? 0 : 1; ps < 2; ++ps) {
    PeerMessage message;
    message.mutable_hello()->set_role("ps");
    message.mutable_hello()->set_address("10.0.0.1:2222");
    message.mutable_hello()->set_index(ps);
    message.mutable_hello()->set_incarnation(ps == 0 ? standbys.incarnation_0 : 11);
    const bool fresh = ps == 0 && standbys.incarnation_0 != 1;
    for (uint32_t shard = 0; shard < 2 && !fresh; ++shard) {
      ShardState state = state_of({standbys.generation, 1, 40}, shard);
      state.set_serving(shard == ps);
      state.set_whole(shard != ps && standbys.whole);
      state.set_coupling(standbys.coupling);
      *message.add_shards() = state;
    }
    EXPECT_EQ(registry.admit(ps + 1, message.hello(), {}), "");
    EXPECT_TRUE(registry.heard(ps + 1, message, {}));
  }
  return registry;
}

class StandbysTest : public testing::Test {
 protected:
  StandbysTest() {
    open(9, registry_of(Standbys{true, true, 8}));
    formation_.announced();
  }
  void open(uint64_t generation, const group::PeerRegistry& registry) {
    formation_.claimed(generation);
    formation_.fenced();
    formation_.look(registry);
    if (formation_.next() != Next::open) return;
    std::vector<OpenReply> replies;
    for (const PsFormation::Opening& opening : formation_.openings()) {
      const uint32_t shard = opening.request.shard();
      ShardState& state = *replies.emplace_back().mutable_state();
      state = state_of({generation, 1, 40}, shard);
      state.set_serving(!opening.request.follow());
      state.set_whole(opening.request.follow());
    }
    formation_.opened(replies);
  }
  PsFormation formation_{2, true, {}, /*copies=*/2};
};

// The serving side's opinion of the copy does not count: rank 0 opens no generation on a copy that
// does not report itself whole.
TEST(PeerRegistryTest, ASecondCopyCountsByItsOwnWord) {
  EXPECT_EQ(registry_of(Standbys{}).replicated(), 2);
  EXPECT_EQ(registry_of(Standbys{true, false}).replicated(), 0);
  EXPECT_EQ(registry_of(Standbys{false}).replicated(), 0);
  group::PeerRegistry registry = registry_of(Standbys{});
  PeerMessage message;
  for (uint32_t shard = 0; shard < 2; ++shard) {
    ShardState& state = *message.add_shards();
    state = state_of({9, 1, 40}, shard);
    state.set_serving(shard == 1);
    state.set_whole(shard == 0);
    state.set_coupling(6);  // the copies of shard 0 are not of one coupling, nor those of shard 1
  }
  EXPECT_TRUE(registry.heard(2, message, {}));
  EXPECT_EQ(registry.replicated(), 0);
}

TEST_F(StandbysTest, CopiesThatAreCoupledStayAsTheyAre) {
  EXPECT_EQ(formation_.next(), Next::watch);
  ASSERT_EQ(formation_.openings().size(), 4u);
  EXPECT_EQ(formation_.serving(), (std::vector<int>{0, 1}));
  EXPECT_TRUE(formation_.openings()[1].request.follow());
  EXPECT_EQ(formation_.openings()[1].ps, 1);
  EXPECT_EQ(formation_.openings()[1].request.coupling(), 5u);
}

TEST_F(StandbysTest, WhoIsLostIsNotWaitedForWhereItsStandbyHasAWholeCopy) {
  formation_.look(registry_of(Standbys{false, true}));
  ASSERT_EQ(formation_.next(), Next::claim);
  open(10, registry_of(Standbys{false, true}));
  EXPECT_EQ(formation_.next(), Next::announce);
  EXPECT_EQ(formation_.request().content(), OpenRequest::KEEP);
  EXPECT_EQ(formation_.serving(), (std::vector<int>{1, 1}));
  EXPECT_EQ(formation_.openings().size(), 2u);
  EXPECT_THAT(formation_.reason(), testing::HasSubstr("ps 1 goes on with its copy of shard 0"));
}

TEST_F(StandbysTest, WhoIsLostIsWaitedForWhereThereIsNoWholeCopy) {
  formation_.look(registry_of(Standbys{false, false}));
  EXPECT_EQ(formation_.next(), Next::watch);
}

TEST_F(StandbysTest, WhoComesBackEmptyIsToBeTheStandbyOfBoth) {
  formation_.look(registry_of(Standbys{false, true}));
  open(10, registry_of(Standbys{false, true}));
  formation_.announced();
  formation_.look(registry_of(Standbys{true, true, 10, 0, /*incarnation=*/2}));
  ASSERT_EQ(formation_.next(), Next::assign);
  GroupView view;
  formation_.announce(view);
  ASSERT_EQ(view.places_size(), 2);
  for (const ShardPlace& place : view.places()) {
    EXPECT_EQ(place.ps(), 1u);
    EXPECT_EQ(place.standby(), 0u);
    EXPECT_EQ(place.standby_incarnation(), 2u);
  }
  EXPECT_EQ(view.generation(), 10u);
}

// Members have been in a generation that the copy missed.
TEST_F(StandbysTest, ACopyThatWasLeftBehindDoesNotCount) {
  formation_.look(registry_of(Standbys{false, true}));
  formation_.claimed(10);
  formation_.fenced();
  formation_.look(registry_of(Standbys{false, true, 8}));
  EXPECT_EQ(formation_.next(), Next::open) << "its report is older than what it said when opened";
  PsFormation other(2, true, {}, 2);
  other.claimed(10);
  other.fenced();
  group::PeerRegistry registry = registry_of(Standbys{true, true, 8});
  PeerMessage message;
  *message.add_shards() = state_of({9, 1, 44}, 1);
  message.mutable_shards(0)->set_used(true);
  EXPECT_TRUE(registry.heard(2, message, {}));
  other.look(registry);
  EXPECT_EQ(other.next(), Next::choose);
}

// A new rank 0 does not know which ps were present before.
TEST(FormationTest, WhoHasNotComeYetIsNoLoss) {
  PsFormation formation(2, true, {}, /*copies=*/2);
  formation.claimed(9);
  formation.fenced();
  formation.look(registry_of(Standbys{false, true}));
  EXPECT_EQ(formation.next(), Next::gather);
}

class ReplicatedShardTest : public testing::Test {
 protected:
  ReplicatedShardTest()
      : layout_(layout_of(1)),
        optimizer_(compute::Optimizer::create(compute::Sgd{}, layout_)),
        hosted_(std::make_unique<Shard>(Shard::Shape{0, {0, 1}, SyncPolicy::sync}, *optimizer_,
                                        schedule_),
                /*process=*/7) {}
  static OpenRequest request(uint64_t generation, OpenRequest::Content content) {
    OpenRequest request;
    request.set_generation(generation);
    request.set_content(content);
    request.set_members(1);
    return request;
  }
  ShardState open(const OpenRequest& request) {
    Shard::Answers answers;
    const auto load = [&](const OpenRequest&) {
      ++loads_;
      Shard::Content content;
      content.parameters = {10};
      return content;
    };
    return hosted_.open(request, load, answers);
  }
  void commit(uint64_t generation) {
    PushHeader header;
    header.generation = generation;
    header.step = hosted_.shard().step();
    header.sums.rows = 1;
    header.sums.weight = static_cast<double>(header.sums.rows);
    const std::vector<float> gradients = {1};
    Shard::Answers answers;
    hosted_.shard().push(1, header, {gradients, {}}, answers);
    ASSERT_EQ(answers.size(), 1u);
  }

  compute::ParameterLayout layout_;
  std::unique_ptr<compute::Optimizer> optimizer_;
  compute::Schedule schedule_;
  ReplicatedShard hosted_;
  int loads_ = 0;
};

TEST_F(ReplicatedShardTest, AnOpeningThatIsSaidAgainPutsNothingBack) {
  open(request(1, OpenRequest::INITIALIZE));
  commit(1);
  EXPECT_EQ(open(request(1, OpenRequest::INITIALIZE)).step(), 1u);
  EXPECT_EQ(loads_, 1);
}

TEST_F(ReplicatedShardTest, RefusesAnEarlierGeneration) {
  open(request(4, OpenRequest::INITIALIZE));
  EXPECT_THROW(open(request(3, OpenRequest::INITIALIZE)), Unavailable);
  EXPECT_EQ(hosted_.state().generation(), 4u);
}

TEST_F(ReplicatedShardTest, KeepsOnlyTheLineageThatIsMeant) {
  OpenRequest keep = request(2, OpenRequest::KEEP);
  keep.set_lineage(1);
  EXPECT_THROW(open(keep), Unavailable);  // it is empty
  open(request(1, OpenRequest::INITIALIZE));
  EXPECT_EQ(open(keep).lineage(), 1u);
  keep.set_generation(3);
  keep.set_lineage(2);
  EXPECT_THROW(open(keep), Unavailable);
  EXPECT_EQ(hosted_.state().generation(), 2u);
}

// From this a chief that comes back learns the losses of steps that only the shards remember.
TEST_F(ReplicatedShardTest, TellsWhatTheStepsSinceTheCheckpointWereTrainedOn) {
  checkpoint::Position position;
  position.sums.add(0, compute::testing::classified(0.5, 0, 7));
  OpenRequest restore = request(1, OpenRequest::RESTORE);
  *restore.mutable_position() = to_message(position);
  EXPECT_EQ(from_messages(open(restore).sums()).of(0).rows, 7);
  commit(1);
  commit(1);
  OpenRequest keep = request(2, OpenRequest::KEEP);
  keep.set_lineage(1);
  const ShardState state = open(keep);
  EXPECT_EQ(from_messages(state.sums()).of(0).rows, 9);
  EXPECT_EQ(from_messages(state.sums_before()).of(0).rows, 8);
  SnapshotRequest snapshot;
  snapshot.set_generation(2);
  const SnapshotReply reply = hosted_.snapshot(snapshot);
  EXPECT_EQ(from_message(reply.position()).sums.of(0).rows, 9);
}

TEST_F(ReplicatedShardTest, ACopyIsWrittenOnlyForWhomItWasMade) {
  open(request(1, OpenRequest::INITIALIZE));
  SnapshotRequest snapshot;
  snapshot.set_generation(1);
  WriteRequest write;
  write.set_generation(1);
  EXPECT_THROW(hosted_.to_write(write), Unavailable);
  hosted_.snapshot(snapshot);
  EXPECT_NO_THROW(hosted_.to_write(write));
  write.set_step(1);
  EXPECT_THROW(hosted_.to_write(write), Unavailable);
  snapshot.set_generation(2);
  EXPECT_THROW(hosted_.snapshot(snapshot), Unavailable);
}

TEST_F(ReplicatedShardTest, WhatIsBeingWrittenOutlastsTheNextSnapshot) {
  open(request(1, OpenRequest::INITIALIZE));
  SnapshotRequest snapshot;
  snapshot.set_generation(1);
  hosted_.snapshot(snapshot);
  WriteRequest write;
  write.set_generation(1);
  const ReplicatedShard::Copy first = hosted_.to_write(write);
  commit(1);
  hosted_.snapshot(snapshot);
  write.set_step(1);
  const ReplicatedShard::Copy second = hosted_.to_write(write);
  for (int i = 0; i < 3; ++i) commit(1);
  EXPECT_EQ(first.image.parameters->front(), 10);
  const float of_second = second.image.parameters->front();
  for (int i = 0; i < 3; ++i) commit(1);
  EXPECT_EQ(second.image.parameters->front(), of_second);
  EXPECT_EQ(second.step, 1u);
}

}  // namespace
}  // namespace muster::ps
