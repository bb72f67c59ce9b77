#include "trainer/collective/collective_formation.h"

#include <gmock/gmock.h>

#include <optional>
#include <vector>

namespace muster::collective {
namespace {

using ::testing::HasSubstr;
using Next = CollectiveFormation::Next;

constexpr uint64_t kGeneration = 9;  // that is formed
constexpr CollectiveFormation::Time kBegin{};

struct Said {
  uint64_t generation = 0;
  uint64_t step = 0;
  bool settled = true;
  uint64_t prepared = 0;
  std::string host = "a";
  uint64_t incarnation = 1;
  bool leaving = false;
  uint64_t unshared = 0;
  uint64_t failed = 0;
  uint64_t differed = 0;
  bool fuses = true;
  std::vector<std::string> gpus = {};
  bool unlinked = false;
  std::string why_unlinked = {};
};

class FormationTest : public ::testing::Test {
 protected:
  static CollectiveFormation::Setup setup(int members, int least = 0, int replicas = 0) {
    CollectiveFormation::Setup setup;
    setup.members = members;
    setup.least = least;
    setup.replicas = replicas;
    return setup;
  }

  // Rank 0 and so on; nobody where nothing is said.
  static group::PeerRegistry registry_of(const std::vector<std::optional<Said>>& members) {
    group::PeerRegistry::Expected expected;
    expected.workers = expected.most_workers = 10;
    group::PeerRegistry registry(expected);
    for (size_t rank = 0; rank < members.size(); ++rank) {
      if (!members[rank]) continue;
      const Said& said = *members[rank];
      PeerMessage message;
      Hello& hello = *message.mutable_hello();
      hello.set_role(rank == 0 ? "chief" : "worker");
      hello.set_index(static_cast<uint32_t>(rank == 0 ? 0 : rank - 1));
      hello.set_incarnation(said.incarnation);
      hello.set_host(said.host);
      MemberState& state = *message.mutable_member();
      state.set_generation(said.generation);
      state.mutable_position()->set_step(said.step);
      state.set_settled(said.settled);
      state.set_prepared(said.prepared);
      state.set_endpoint("endpoint " + std::to_string(rank));
      state.set_unshared(said.unshared);
      state.set_failed(said.failed);
      state.set_differed(said.differed);
      hello.set_fuses(said.fuses);
      for (const std::string& gpu : said.gpus) hello.add_gpus(gpu);
      state.set_unlinked(said.unlinked);
      hello.set_why_unlinked(said.why_unlinked);
      message.set_leaving(said.leaving);
      EXPECT_EQ(registry.admit(rank + 1, hello, kBegin), "");
      EXPECT_TRUE(registry.heard(rank + 1, message, kBegin));
    }
    return registry;
  }

  // Claims the generation and looks at who is there.
  static CollectiveFormation gathered(const CollectiveFormation::Setup& setup,
                                      const group::PeerRegistry& registry, uint64_t published = 0) {
    CollectiveFormation formation(setup, kBegin);
    EXPECT_EQ(formation.next(), Next::claim);
    formation.claimed(kGeneration);
    EXPECT_EQ(formation.next(), Next::fence);
    formation.fenced(published);
    EXPECT_EQ(formation.next(), Next::gather);
    formation.look(registry, kBegin);
    return formation;
  }
  // And goes on to where members are to prepare themselves.
  static CollectiveFormation announced(const CollectiveFormation::Setup& setup,
                                       const group::PeerRegistry& registry) {
    CollectiveFormation formation = gathered(setup, registry);
    if (formation.next() == Next::choose) formation.chosen(std::nullopt);
    EXPECT_EQ(formation.next(), Next::announce);
    formation.announced();
    return formation;
  }
  static CollectiveFormation running(const CollectiveFormation::Setup& setup,
                                     std::vector<std::optional<Said>> members) {
    CollectiveFormation formation = announced(setup, registry_of(members));
    for (auto& member : members)
      if (member) member->prepared = kGeneration;
    formation.look(registry_of(members), kBegin);
    EXPECT_EQ(formation.next(), Next::run);
    formation.running();
    EXPECT_EQ(formation.next(), Next::watch);
    return formation;
  }
};

TEST_F(FormationTest, AnnouncesThePlanAndThenThatItRunsButInNoViewThatHasEnded) {
  const auto view_of = [](GroupView::Phase phase, const CollectiveFormation& formation) {
    GroupView view;
    view.set_phase(phase);
    formation.announce(view);
    return view;
  };
  const CollectiveFormation planned = gathered(setup(1), registry_of({Said{8, 5}}));
  const GroupView told = view_of(GroupView::FORMING, planned);
  EXPECT_EQ(told.phase(), GroupView::FORMING);
  EXPECT_EQ(told.generation(), 0u);
  EXPECT_EQ(told.collective().generation(), kGeneration);
  CollectiveFormation complete = announced(setup(1), registry_of({Said{8, 5}}));
  Said prepared{8, 5};
  prepared.prepared = kGeneration;
  complete.look(registry_of({prepared}), kBegin);
  ASSERT_EQ(complete.next(), Next::run);
  const GroupView runs = view_of(GroupView::FORMING, complete);
  EXPECT_EQ(runs.phase(), GroupView::RUNNING);
  EXPECT_EQ(runs.generation(), kGeneration);
  for (const auto phase : {GroupView::FINISHED, GroupView::FAILED})
    EXPECT_EQ(view_of(phase, complete).phase(), phase);
}

TEST_F(FormationTest, WaitsForAllMembersAndUntilTheyHaveSettled) {
  EXPECT_EQ(gathered(setup(2), registry_of({Said{}})).next(), Next::gather);
  EXPECT_EQ(gathered(setup(2), registry_of({Said{}, Said{8, 5, false}})).next(), Next::gather);
  EXPECT_EQ(gathered(setup(2), registry_of({Said{}, Said{8, 5}})).next(), Next::announce);
}

TEST_F(FormationTest, GoesOnWithWhatTheOneHoldsThatHasGotFurthest) {
  const CollectiveFormation formation =
      gathered(setup(4), registry_of({Said{7, 90}, Said{8, 5}, Said{8, 6}, Said{8, 6}}));
  const CollectivePlan& plan = formation.plan();
  EXPECT_EQ(plan.generation(), kGeneration);
  EXPECT_EQ(plan.content(), CollectivePlan::KEEP);
  EXPECT_EQ(plan.position().step(), 6u);
  EXPECT_EQ(plan.source(), 2u);
  EXPECT_EQ(plan.replicas(), 4u);
  EXPECT_TRUE(plan.shared_memory());
  ASSERT_EQ(plan.members_size(), 4);
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(plan.members(rank).has_state(), rank >= 2) << rank;
  EXPECT_THAT(formation.reason(), HasSubstr("what rank 2 holds of generation 8"));
}

TEST_F(FormationTest, LinksGpusWhereThatIsPossible) {
  using Link = CollectiveFormation::Link;
  struct Case {
    std::vector<std::vector<std::string>> gpus;  // of each member
    Link link;
    const char* why;  // not; "": they are linked; null: there are none
    bool one_host = true;
    int devices = 1;
    int replicas = 0;
    bool unlinked = false;               // the last member
    const char* why_unlinked = nullptr;  // as the last member says
  };
  const Case cases[] = {
      {{{"a"}, {"b"}}, Link::on_one_host, ""},
      {{{"a"}, {"b"}}, Link::anywhere, "", false},
      {{{"a"}, {"b"}}, Link::on_one_host, "would not be encrypted", false},
      {{{"a"}, {"b"}}, Link::on_one_host, "rank 1: no library", true, 1, 0, false, "no library"},
      {{{}}, Link::on_one_host, "rank 0: never", true, 1, 0, false, "never"},
      {{{}, {}}, Link::on_one_host, "rank 0 computes on 0 GPUs", true, 1, 0, false, "never"},
      {{{"a"}}, Link::on_one_host, ""},
      {{{"a", "b"}, {"c", "d"}}, Link::on_one_host, "", true, 2},
      {{{"a", "b"}, {"c"}}, Link::on_one_host, "rank 1 computes on 1 GPUs, not on 2", true, 2},
      {{{"a", "b"}, {"b", "d"}}, Link::on_one_host, "rank 0 and rank 1 have the same GPU", true, 2},
      {{{"a", "a"}, {"c", "d"}}, Link::on_one_host, "two devices of rank 0 share a GPU", true, 2},
      {{{"a"}, {"a"}}, Link::on_one_host, "rank 0 and rank 1 have the same GPU"},
      {{{"a"}, {}}, Link::on_one_host, "rank 1 computes on 0 GPUs"},
      {{{}, {"a"}}, Link::on_one_host, "rank 0 computes on 0 GPUs"},
      {{{}, {}}, Link::on_one_host, nullptr},
      {{{"a"}, {"b"}}, Link::on_one_host, "3 logical replicas", true, 1, 3},
      {{{"a"}, {"b"}}, Link::on_one_host, "", true, 1, 2},
      {{{"a"}, {"b"}}, Link::on_one_host, "rank 1 could not be linked", true, 1, 0, true},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.why ? one.why : "no GPUs");
    std::vector<std::optional<Said>> members;
    for (const auto& gpus : one.gpus) {
      Said said;
      said.gpus = gpus;
      if (!one.one_host) said.host = "host " + std::to_string(members.size());
      members.emplace_back(said);
    }
    members.back()->unlinked = one.unlinked;
    if (one.why_unlinked) {
      members.back()->gpus.clear();
      members.back()->why_unlinked = one.why_unlinked;
    }
    CollectiveFormation::Setup setup =
        this->setup(static_cast<int>(members.size()), 0, one.replicas);
    setup.devices = one.devices;
    setup.link = one.link;
    const CollectiveFormation formation = gathered(setup, registry_of(members));
    const bool linked = one.why != nullptr && std::string(one.why).empty();
    EXPECT_EQ(formation.plan().linked_gpus(), linked);
    EXPECT_EQ(formation.plan().shared_memory(), one.one_host && !linked);
    EXPECT_THAT(formation.why_unlinked(), HasSubstr(one.why ? one.why : ""));
    EXPECT_EQ(formation.why_unlinked().empty(), linked || one.why == nullptr);
  }
}

TEST_F(FormationTest, ALaterCheckpointIsTakenBeforeWhatAnyMemberHolds) {
  const auto registry = registry_of({Said{}, Said{4, 50}});
  EXPECT_EQ(gathered(setup(2), registry, /*published=*/4).next(), Next::announce);
  CollectiveFormation formation = gathered(setup(2), registry, /*published=*/5);
  ASSERT_EQ(formation.next(), Next::choose);
  CollectiveFormation::Checkpoint checkpoint{"checkpoints/ckpt-60-g5", {}};
  checkpoint.position.set_step(60);
  formation.chosen(checkpoint);
  EXPECT_EQ(formation.plan().content(), CollectivePlan::RESTORE);
  EXPECT_EQ(formation.plan().checkpoint(), "checkpoints/ckpt-60-g5");
  EXPECT_EQ(formation.plan().position().step(), 60u);
  EXPECT_FALSE(formation.plan().members(1).has_state());
}

TEST_F(FormationTest, WhereNobodyHoldsAnythingItBeginsAnew) {
  CollectiveFormation formation = gathered(setup(2), registry_of({Said{}, Said{}}));
  ASSERT_EQ(formation.next(), Next::choose);
  formation.chosen(std::nullopt);
  EXPECT_EQ(formation.plan().content(), CollectivePlan::INITIALIZE);
}

// One report is enough: the others may have ended before they told of it.
TEST_F(FormationTest, AfterStatesHaveDifferedACheckpointIsRestored) {
  struct Case {
    uint64_t differed;
    Next next;
  };
  for (const Case& one : {Case{0, Next::announce}, Case{7, Next::announce}, Case{8, Next::choose},
                          Case{9, Next::choose}}) {
    Said tells{8, 5};
    tells.differed = one.differed;
    EXPECT_EQ(gathered(setup(3), registry_of({Said{8, 5}, tells, Said{8, 5}})).next(), one.next)
        << one.differed;
  }
  Said tells{8, 5};
  tells.differed = 8;
  CollectiveFormation formation = gathered(setup(2), registry_of({Said{8, 6}, tells}));
  EXPECT_EQ(formation.reason(), "the members' states differ");
  CollectiveFormation::Checkpoint checkpoint{"checkpoints/ckpt-4-g8", {}};
  checkpoint.position.set_step(4);
  formation.chosen(checkpoint);
  EXPECT_EQ(formation.plan().content(), CollectivePlan::RESTORE);
  for (const MemberPlace& place : formation.plan().members()) EXPECT_FALSE(place.has_state());
  // The members still report their old states. That is no reason to claim another generation.
  formation.announced();
  tells.prepared = kGeneration;
  formation.look(registry_of({Said{8, 6, true, kGeneration}, tells}), kBegin);
  EXPECT_EQ(formation.next(), Next::run);
}

TEST_F(FormationTest, StatesAreComparedWhereAllRoundAlike) {
  for (const bool first : {false, true})
    for (const bool second : {false, true}) {
      Said one{8, 5}, other{8, 5};
      one.fuses = first;
      other.fuses = second;
      const CollectiveFormation formation = gathered(setup(2), registry_of({one, other}));
      EXPECT_EQ(formation.plan().comparable(), first == second);
      // Otherwise all take the source's, so that they begin with the same bits.
      EXPECT_EQ(formation.plan().members(1).has_state(), first == second);
    }
}

TEST_F(FormationTest, MemoryIsSharedOnOneHostOnly) {
  EXPECT_FALSE(gathered(setup(2), registry_of({Said{8, 5}, Said{8, 5, true, 0, "b"}}))
                   .plan()
                   .shared_memory());
  EXPECT_FALSE(gathered(setup(2), registry_of({Said{8, 5, true, 0, ""}, Said{8, 5, true, 0, ""}}))
                   .plan()
                   .shared_memory());
}

// It is between two processes: another in the place of either is tried again.
TEST_F(FormationTest, MemoryIsNotSharedWithAMemberWhoseMemoryIsHidden) {
  Said other{8, 5};
  other.incarnation = 2;
  Said unshared;
  unshared.unshared = 2;
  EXPECT_FALSE(gathered(setup(2), registry_of({other, unshared})).plan().shared_memory());
  EXPECT_TRUE(gathered(setup(2), registry_of({Said{8, 5}, unshared})).plan().shared_memory());
}

TEST_F(FormationTest, AGenerationThatAMemberKnowsOfIsNotOpenedAgain) {
  EXPECT_EQ(gathered(setup(2), registry_of({Said{}, Said{kGeneration, 5}})).next(), Next::claim);
  const CollectiveFormation formation =
      gathered(setup(2), registry_of({Said{}, Said{8, 5, true, kGeneration + 3}}));
  EXPECT_EQ(formation.next(), Next::claim);
  EXPECT_EQ(formation.above(), kGeneration + 3);
}

// Also those that share the source's memory: only then have they said their last word.
TEST_F(FormationTest, RunsWhenAllHavePrepared) {
  for (const char* host : {"a", "b"}) {
    const auto said = [&](uint64_t prepared) { return Said{8, 5, true, prepared, host}; };
    CollectiveFormation formation = announced(setup(2), registry_of({Said{8, 5}, said(8)}));
    formation.look(registry_of({Said{8, 5, true, kGeneration}, said(8)}), kBegin);
    EXPECT_EQ(formation.next(), Next::assemble);
    formation.look(registry_of({Said{8, 5}, said(kGeneration)}), kBegin);
    EXPECT_EQ(formation.next(), Next::assemble);
    formation.look(registry_of({Said{8, 5, true, kGeneration}, said(kGeneration)}), kBegin);
    EXPECT_EQ(formation.next(), Next::run);
    EXPECT_EQ(formation.plan().members(1).endpoint(), "endpoint 1");
  }
}

// It had entered a generation after it had last said where it stands.
TEST_F(FormationTest, AMemberThatHasGoneFurtherThanWasKnownBeginsTheNextOne) {
  for (const Said& known : {Said{}, Said{7, 5}, Said{8, 5}}) {
    CollectiveFormation formation = announced(setup(2), registry_of({Said{}, known}));
    formation.look(registry_of({Said{0, 0, true, kGeneration}, Said{8, 6, true, kGeneration}}),
                   kBegin);
    ASSERT_EQ(formation.next(), Next::claim);
    formation.claimed(kGeneration + 1);
    formation.fenced(0);
    formation.look(registry_of({Said{0, 0, true, kGeneration}, Said{8, 6, true, kGeneration}}),
                   kBegin);
    EXPECT_EQ(formation.plan().content(), CollectivePlan::KEEP);
    EXPECT_EQ(formation.plan().position().step(), 6u);
  }
}

TEST_F(FormationTest, WhoeverCannotEnterBeginsTheNextOne) {
  Said failed{8, 5};
  failed.failed = kGeneration;
  CollectiveFormation formation = announced(setup(2), registry_of({Said{8, 5}, Said{8, 5}}));
  formation.look(registry_of({Said{8, 5}, failed}), kBegin);
  EXPECT_EQ(formation.next(), Next::claim);
  CollectiveFormation shared = running(setup(2), {Said{8, 5}, Said{8, 5}});
  shared.look(registry_of({Said{8, 5}, failed}), kBegin);
  EXPECT_EQ(shared.next(), Next::claim);
}

TEST_F(FormationTest, WhoIsAwayMayComeBackAsItWas) {
  CollectiveFormation formation = running(setup(2), {Said{8, 5}, Said{8, 5}});
  formation.look(registry_of({Said{8, 5}}), kBegin);
  EXPECT_EQ(formation.next(), Next::watch);
  formation.look(registry_of({Said{8, 5}, Said{kGeneration, 5, false}}), kBegin);
  EXPECT_EQ(formation.next(), Next::watch);
  formation.look(registry_of({Said{8, 5}, Said{kGeneration, 7, true}}), kBegin);
  EXPECT_EQ(formation.next(), Next::claim);
  Said other;
  other.incarnation = 2;
  CollectiveFormation replaced = running(setup(2), {Said{8, 5}, Said{8, 5}});
  replaced.look(registry_of({Said{8, 5}, other}), kBegin);
  EXPECT_EQ(replaced.next(), Next::claim);
}

TEST_F(FormationTest, AnElasticGroupGoesOnWithoutWhoIsLostAndTakesInWhoComes) {
  CollectiveFormation grown = running(setup(2, 1, 4), {Said{8, 5}, Said{8, 5}});
  EXPECT_EQ(grown.plan().replicas(), 4u);
  grown.look(registry_of({Said{8, 5}, Said{8, 5}, Said{}}), kBegin);
  EXPECT_EQ(grown.next(), Next::claim);
  CollectiveFormation formation = running(setup(2, 1, 4), {Said{8, 5}, Said{8, 5}});
  formation.look(registry_of({Said{8, 5}}), kBegin);
  ASSERT_EQ(formation.next(), Next::claim);
  formation.claimed(kGeneration + 1);
  formation.fenced(0);
  formation.look(registry_of({Said{kGeneration, 6}}), kBegin);
  EXPECT_EQ(formation.next(), Next::announce);
  EXPECT_EQ(formation.plan().members_size(), 1);
  EXPECT_EQ(formation.plan().position().step(), 6u);
}

TEST_F(FormationTest, AnElasticGroupBeginsWithoutSomebodyOnlyAfterAWhile) {
  const auto registry = registry_of({Said{}, Said{}});
  CollectiveFormation formation = gathered(setup(3, 2), registry);
  EXPECT_EQ(formation.next(), Next::gather);
  formation.look(registry, kBegin + CollectiveFormation::kMuster);
  EXPECT_EQ(formation.next(), Next::choose);
  CollectiveFormation alone = gathered(setup(3, 2), registry_of({Said{}}));
  alone.look(registry_of({Said{}}), kBegin + 10 * CollectiveFormation::kMuster);
  EXPECT_EQ(alone.next(), Next::gather) << "they are fewer than the least";
}

TEST_F(FormationTest, WhoIsLeavingAnElasticGroupTakesNoPartAnyMore) {
  Said leaving{kGeneration, 6, false};
  leaving.leaving = true;
  CollectiveFormation formation = running(setup(2, 1), {Said{8, 5}, Said{8, 5}});
  formation.look(registry_of({Said{kGeneration, 6, false}, leaving}), kBegin);
  ASSERT_EQ(formation.next(), Next::claim);
  formation.claimed(kGeneration + 1);
  formation.fenced(0);
  formation.look(registry_of({Said{kGeneration, 6}, leaving}), kBegin);
  EXPECT_EQ(formation.next(), Next::announce);
  EXPECT_EQ(formation.plan().members_size(), 1);
}

// Else it would stand still until another comes.
TEST_F(FormationTest, WhoIsLeavingIsKeptWhileTheOthersAreTooFew) {
  Said leaving{kGeneration, 6, false};
  leaving.leaving = true;
  const Said staying{kGeneration, 6, false};
  CollectiveFormation formation = running(setup(2, 2), {Said{8, 5}, Said{8, 5}});
  formation.look(registry_of({staying, leaving}), kBegin);
  EXPECT_EQ(formation.next(), Next::watch);
  formation.look(registry_of({staying, leaving, Said{}}), kBegin);
  ASSERT_EQ(formation.next(), Next::claim);
  formation.claimed(kGeneration + 1);
  formation.fenced(0);
  leaving.settled = true;
  formation.look(registry_of({Said{kGeneration, 6}, leaving, Said{}}), kBegin);
  ASSERT_EQ(formation.next(), Next::announce);
  ASSERT_EQ(formation.plan().members_size(), 2);
  EXPECT_EQ(formation.plan().members(1).rank(), 2u);
  CollectiveFormation gone = running(setup(2, 2), {Said{8, 5}, Said{8, 5}});
  gone.look(registry_of({staying}), kBegin);
  EXPECT_EQ(gone.next(), Next::claim);
}

}  // namespace
}  // namespace muster::collective
