#include "trainer/collective/session.h"

#include <gtest/gtest.h>

#include <atomic>

#include "tests/unit/trainer/collective/group_of_threads.h"
#include "trainer/collective/shared_session.h"
#include "trainer/collective/slice_update.h"

namespace muster::collective {
namespace {

using testing::Reference;
using testing::run_members;
using Outcome = Session::Outcome;
using Sessions = std::vector<std::unique_ptr<HostSession>>;

constexpr uint64_t kFirstRange = 3;

enum class Way { shared, wire };

class SessionTest : public ::testing::TestWithParam<Way> {
 protected:
  static Sessions sessions(const Reference& reference, int members) {
    const auto make = GetParam() == Way::shared ? testing::shared_sessions : testing::wire_sessions;
    return make(reference, members, reference.initial(kFirstRange));
  }

  static void expect_same_bits(const Reference& reference, int members, uint64_t steps) {
    Reference::State expected = reference.initial(kFirstRange);
    std::vector<compute::LossSums> sums;
    while (expected.step < kFirstRange + steps) {
      sums.push_back(reference.sums(expected.step));
      reference.advance(expected);
    }
    const Sessions all = sessions(reference, members);
    run_members(members, [&](int member) {
      HostSession& session = *all[static_cast<size_t>(member)];
      for (uint64_t step = kFirstRange; step < expected.step; ++step) {
        const auto made = testing::make_step(session, reference, step, testing::patient());
        ASSERT_EQ(made.outcome, Outcome::ok);
        ASSERT_TRUE(made.sums == sums[step - kFirstRange]) << "of step " << step;
      }
      const auto own = session.parameters();
      EXPECT_TRUE(std::equal(own.begin(), own.end(), expected.buffers[0].begin()));
      EXPECT_TRUE(testing::copy_of(session, reference, expected.step) == expected);
    });
    for (const auto& session : all) {
      EXPECT_EQ(session->settle().step, expected.step);
      EXPECT_EQ(session->settle().sums.rows, 0);
      EXPECT_TRUE(testing::copy_of(*session, reference, expected.step) == expected);
    }
  }

  // All make `before` steps, and all but the last member begin another; then that one does what
  // ends it. Returns where each of the others stands.
  static std::vector<uint64_t> miss_one(const Reference& reference, const Sessions& all,
                                        uint64_t before, const std::function<void(int)>& end,
                                        Outcome expected, const Session::Watch& watch) {
    const int last = static_cast<int>(all.size()) - 1;
    std::vector<uint64_t> settled(all.size());
    std::atomic<int> waiting = 0;
    run_members(last + 1, [&](int member) {
      HostSession& session = *all[static_cast<size_t>(member)];
      for (uint64_t step = kFirstRange; step < kFirstRange + before; ++step)
        EXPECT_EQ(testing::make_step(session, reference, step, watch).outcome, Outcome::ok);
      if (member == last) {
        while (waiting < last) std::this_thread::yield();
        return end(member);
      }
      ++waiting;
      const auto missed =
          testing::make_step(session, reference, kFirstRange + before, watch).outcome;
      // Who shares memory with somebody who has settled hears of that first.
      EXPECT_TRUE(missed == expected || (GetParam() == Way::shared && missed == Outcome::over));
      settled[static_cast<size_t>(member)] = session.settle().step;
    });
    settled.pop_back();
    return settled;
  }
};

// Also those that have no replica, or no tile.
TEST_P(SessionTest, ManyMembersHaveTheBitsOfOne) {
  for (const auto& optimizer : testing::optimizers())
    for (const int replicas : {1, 3, 8}) {
      const Reference reference(optimizer, 2300, replicas);
      for (int members = 1; members <= 4; ++members) {
        SCOPED_TRACE(testing::name_of(optimizer) + ", " + std::to_string(replicas) + " replicas, " +
                     std::to_string(members) + " members");
        expect_same_bits(reference, members, 6);
        if (HasFailure()) return;
      }
    }
}

TEST_P(SessionTest, ManyMembersHaveTheBitsOfOneWhereSumsAreRounded) {
  for (const int replicas : {1, 3, 8}) {
    const Reference reference(compute::Adam{}, 2300, replicas, /*rounded=*/true);
    for (int members = 1; members <= 4; ++members) {
      SCOPED_TRACE(std::to_string(replicas) + " replicas, " + std::to_string(members) + " members");
      expect_same_bits(reference, members, 6);
      if (HasFailure()) return;
    }
  }
}

TEST_P(SessionTest, AModelOfSeveralBuckets) {
  for (const bool rounded : {false, true}) {
    const Reference reference(compute::Sgd{}, (1 << 18) + (1 << 20) + 1000, 3, rounded);
    expect_same_bits(reference, 2, 2);
  }
}

// Those that have no part of it are not waited for as others are.
TEST_P(SessionTest, AModelSmallerThanTheGroup) {
  for (const int replicas : {1, 4})
    for (int members = 1; members <= 4; ++members)
      for (const bool rounded : {false, true})
        expect_same_bits(Reference(compute::Adam{}, 3, replicas, rounded), members, 30);
}

TEST_P(SessionTest, WhoMissesAMemberComesBackWhenTheGenerationIsOver) {
  const Reference reference(compute::Adam{}, 2300, 4);
  const Sessions all = sessions(reference, 4);
  std::atomic<bool> over = false;
  const Session::Watch watch{{}, [&] { return over.load(); }};
  const auto settled = miss_one(
      reference, all, 5, [&](int) { over = true; }, Outcome::over, watch);
  EXPECT_EQ(settled, std::vector<uint64_t>(3, kFirstRange + 5));
}

TEST_P(SessionTest, WhoMissesAMemberComesBackWhenAskedToStop) {
  const Reference reference(compute::Adam{}, 2300, 4);
  const Sessions all = sessions(reference, 3);
  std::stop_source stop;
  const Session::Watch watch{stop.get_token(), [] { return false; }};
  const auto settled = miss_one(
      reference, all, 5, [&](int) { stop.request_stop(); }, Outcome::interrupted, watch);
  EXPECT_EQ(settled, std::vector<uint64_t>(2, kFirstRange + 5));
}

INSTANTIATE_TEST_SUITE_P(BothWays, SessionTest, ::testing::Values(Way::shared, Way::wire),
                         [](const auto& info) {
                           return info.param == Way::shared ? "SharedMemory" : "Wire";
                         });

class WireSessionTest : public SessionTest {};

// Whatever they are waiting for: nobody has to tell them.
TEST_P(WireSessionTest, ThoseThatAreLeftComeBackWhenAPeerIsGone) {
  const Reference reference(compute::Sgd{}, 5000, 4);
  for (const uint64_t before : {0, 1, 7}) {
    Sessions all = sessions(reference, 4);
    const auto settled = miss_one(
        reference, all, before, [&](int member) { all[static_cast<size_t>(member)].reset(); },
        Outcome::over, testing::patient());
    EXPECT_EQ(settled, std::vector<uint64_t>(3, kFirstRange + before));
    Reference::State expected = reference.initial(kFirstRange);
    while (expected.step < kFirstRange + before) reference.advance(expected);
    for (size_t member = 0; member < 3; ++member)
      EXPECT_TRUE(testing::copy_of(*all[member], reference, expected.step) == expected);
  }
}

// The first member asks for the comparison. It covers the parameters and each slot.
TEST_P(WireSessionTest, WhoHoldsAnotherStateIsFoundOut) {
  constexpr int kMembers = 3;
  const Reference reference(compute::Adam{}, 2300, kMembers);
  for (size_t buffer = 0; buffer < 3; ++buffer) {
    Sessions all = sessions(reference, kMembers);
    run_members(kMembers, [&](int member) {
      HostSession& session = *all[static_cast<size_t>(member)];
      const auto make = [&](uint64_t step, bool compare) {
        return testing::make_step(session, reference, kFirstRange + step, testing::patient(),
                                  compare && member == 0);
      };
      EXPECT_FALSE(make(0, false).compared);
      EXPECT_TRUE(make(1, true).compared);
      if (member == 1) {
        const auto floats = buffer == 0 ? session.parameters() : session.slot(buffer - 1);
        reinterpret_cast<uint32_t&>(const_cast<float&>(floats[1000])) ^= 1;
      }
      EXPECT_EQ(make(2, false).outcome, Outcome::ok);
      const auto made = make(3, true);
      EXPECT_EQ(made.outcome, Outcome::differs) << "buffer " << buffer;
      EXPECT_EQ(made.odd, std::vector<int>{1});
      EXPECT_FALSE(made.compared);
      EXPECT_EQ(session.settle().step, kFirstRange + 4);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Wire, WireSessionTest, ::testing::Values(Way::wire),
                         [](const auto&) { return "Wire"; });

// A survivor settles: those that wait for a step that cannot be made any more come back.
TEST(SharedSessionTest, WhoSettlesEndsTheGenerationForAll) {
  const Reference reference(compute::Adam{}, 3000, 3);
  const auto all = testing::shared_sessions(reference, 3, reference.initial(kFirstRange));
  run_members(3, [&](int member) {
    HostSession& session = *all[static_cast<size_t>(member)];
    if (member == 0) {
      EXPECT_EQ(testing::make_step(session, reference, kFirstRange, testing::patient()).outcome,
                Outcome::ok);
      EXPECT_EQ(session.settle().step, kFirstRange + 1);
      return;
    }
    for (uint64_t step = kFirstRange;; ++step) {
      const auto made = testing::make_step(session, reference, step, testing::patient());
      if (made.outcome == Outcome::ok) continue;
      EXPECT_EQ(made.outcome, Outcome::over);
      break;
    }
    EXPECT_EQ(session.settle().step, kFirstRange + 1);
  });
  Reference::State expected = reference.initial(kFirstRange);
  reference.advance(expected);
  for (const auto& session : all)
    EXPECT_TRUE(testing::copy_of(*session, reference, kFirstRange + 1) == expected);
}

// Of a step that all have contributed to, though it was never made by all of them.
TEST(SharedSessionTest, AStepThatIsCompletedWhileSettlingHasItsSums) {
  const Reference reference(compute::Adam{}, 3000, 2);
  auto state = SharedState::make(reference.shape(2), kFirstRange, 0);
  Reference::State expected = reference.initial(kFirstRange);
  std::copy(expected.buffers[0].begin(), expected.buffers[0].end(), state->parameters().begin());
  for (int replica = 0; replica < 2; ++replica) {
    const auto gradient =
        reference.gradient(kFirstRange, {replica, replica + 1}, expected.buffers[0]);
    std::copy(gradient.begin(), gradient.end(), state->sum(static_cast<size_t>(replica)).begin());
    state->set_sums(replica, reference.sums(kFirstRange, replica));
    ASSERT_TRUE(state->contribute(kFirstRange));
  }
  SharedSession session(std::move(state), 0, reference.optimizer());
  const Session::Settled settled = session.settle();
  EXPECT_EQ(settled.step, kFirstRange + 1);
  EXPECT_TRUE(settled.sums == reference.sums(kFirstRange));
  reference.advance(expected);
  EXPECT_TRUE(testing::copy_of(session, reference, kFirstRange + 1) == expected);
}

// All by one mapping, so that ThreadSanitizer sees what the words are to order; and fenced at any
// time.
TEST(SharedSessionTest, ThreadsThatAreFencedAtAnyTime) {
  constexpr int kMembers = 3;
  const Reference reference(compute::Adam{}, 4 * SharedState::kTile, 3);
  Reference::State expected = reference.initial();
  for (int round = 0; round < 40; ++round) {
    const auto state = SharedState::make(reference.shape(kMembers), 0, 0);
    const Reference::State initial = reference.initial();
    std::copy(initial.buffers[0].begin(), initial.buffers[0].end(), state->parameters().begin());
    Reference::State found;
    run_members(kMembers + 1, [&](int member) {
      SliceUpdate update(*state, reference.optimizer());
      if (member == kMembers) {
        std::this_thread::sleep_for(std::chrono::microseconds(50 * round));
        state->fence();
        found = reference.empty(state->settled_step());
        const auto sums = state->must_complete() ? state->sums() : compute::LossSums{};
        return update.extract(found.buffers[0], found.slots(),
                              reference.arguments(found.step - 1, sums));
      }
      for (uint64_t step = 0;; ++step) {
        const auto gradient = reference.gradient(step, {member, member + 1}, state->parameters());
        std::copy(gradient.begin(), gradient.end(),
                  state->sum(static_cast<size_t>(member)).begin());
        state->set_sums(member, reference.sums(step, member));
        if (!state->contribute(step)) return;
        const auto wait = [&](auto ready) {
          EXPECT_TRUE(state->wait(ready, {}, std::chrono::hours(1)));
          return ready();
        };
        if (!wait([&] { return state->all_contributed(step); })) return;
        if (!update.run(step, member, reference.arguments(step, state->sums()))) return;
        if (!wait([&] { return state->done(step); })) return;
      }
    });
    if (found.step < expected.step) expected = reference.initial();
    while (expected.step < found.step) reference.advance(expected);
    ASSERT_TRUE(found == expected) << "at step " << found.step;
  }
}

}  // namespace
}  // namespace muster::collective
