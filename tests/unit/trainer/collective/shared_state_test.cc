#include "trainer/collective/shared_state.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "common/error.h"
#include "common/system/shared_memory.h"
#include "tests/unit/trainer/collective/support.h"
#include "tests/unit/trainer/compute/sums.h"
#include "trainer/collective/slice_update.h"

namespace muster::collective {
namespace {

using ::testing::HasSubstr;
using testing::Reference;

constexpr uint64_t kStep = 7;  // that is torn

// How far a member is in a step when it is stopped. Tiles are counted in its slice.
struct Place {
  enum class At {
    nothing,
    contributed,  // and has begun no tile
    begun,        // a tile's old content is logged
    torn,         // half of that tile is written
    updated,      // all of that tile is
    finished,     // the slice is
  } at = At::nothing;
  size_t tile = 0;
};

bool contributed(const Place& place) {
  return place.at != Place::At::nothing;
}

// All that can be, of a slice of so many tiles.
std::vector<Place> places(size_t tiles) {
  std::vector<Place> all = {{Place::At::nothing}, {Place::At::contributed}};
  for (size_t tile = 0; tile < tiles; ++tile)
    for (const Place::At at : {Place::At::begun, Place::At::torn, Place::At::updated})
      all.push_back({at, tile});
  all.push_back({Place::At::finished});
  return all;
}

// Members of one host in one process, each with a mapping of its own, stopped wherever they are to
// be.
class Group {
 public:
  Group(const Reference& reference, int members, const Reference::State& state)
      : reference_(reference), next_(state) {
    handles_.push_back(SharedState::make(reference.shape(members), state.step, 0));
    std::ranges::copy(state.buffers[0], handles_[0]->parameters().begin());
    for (size_t i = 0; i < reference.slots(); ++i)
      std::ranges::copy(state.buffers[1 + i], handles_[0]->slot(i).begin());
    while (static_cast<int>(handles_.size()) < members)
      handles_.push_back(SharedState::open(reference.shape(members), handles_[0]->offer()));
    for (const auto& handle : handles_) updates_.emplace_back(*handle, reference.optimizer());
    reference.advance(next_);
  }

  const SharedState& handle(int member) const { return *handles_[static_cast<size_t>(member)]; }
  const SharedState::Shape& shape() const { return handle(0).shape(); }
  size_t tiles(int member) const {
    return shape().first_tile(member + 1) - shape().first_tile(member);
  }

  void contribute(int member, uint64_t step) {
    size_t node = 0;
    for (int before = 0; before < member; ++before) node += shape().nodes_of(before).size();
    for (const compute::Subtree& subtree : shape().nodes_of(member)) {
      const auto gradient = reference_.gradient(step, subtree, handle(member).parameters());
      std::ranges::copy(gradient, handle(member).sum(node++).begin());
      for (int replica = subtree.begin; replica < subtree.end; ++replica)
        handle(member).set_sums(replica, reference_.sums(step, replica));
    }
    EXPECT_TRUE(handle(member).contribute(step));
  }

  void make_whole_step(uint64_t step) {
    for (int member = 0; member < shape().members; ++member) contribute(member, step);
    for (int member = 0; member < shape().members; ++member)
      EXPECT_TRUE(updates_[static_cast<size_t>(member)].run(
          step, member, reference_.arguments(step, handle(member).sums())));
    reference_.advance(next_);
  }

  // Everybody goes as far as it is to go.
  void go(uint64_t step, const std::vector<Place>& to) {
    for (int member = 0; member < shape().members; ++member)
      if (contributed(to[static_cast<size_t>(member)])) contribute(member, step);
    for (int member = 0; member < shape().members; ++member)
      update(step, member, to[static_cast<size_t>(member)]);
  }

  // What one that is taken for lost still does when it wakes up.
  void sleepwalk(uint64_t step, int member, const Place& place) {
    const SharedState& own = handle(member);
    switch (place.at) {
      case Place::At::nothing:
        for (size_t node = 0; node < shape().nodes_of(member).size(); ++node)
          std::ranges::fill(own.sum(first_node(member) + node), std::nanf(""));
        EXPECT_FALSE(own.contribute(step));
        return;
      case Place::At::begun:
      case Place::At::torn:
        spoil(member, place.tile, 0, 1);
        [[fallthrough]];
      case Place::At::contributed:
      case Place::At::updated: {
        const size_t next = place.at == Place::At::contributed ? 0 : place.tile + 1;
        if (next < tiles(member))
          EXPECT_FALSE(own.begin_tile(step, member, shape().first_tile(member) + next));
        else
          EXPECT_FALSE(own.finish_slice(step, member));
        return;
      }
      case Place::At::finished:
        EXPECT_FALSE(own.contribute(step + 1));
        return;
    }
  }

  // As a survivor has it, by its own mapping.
  Reference::State extract(int member) {
    const SharedState& own = handle(member);
    Reference::State state = reference_.empty(own.settled_step());
    const uint64_t before = state.step - 1;
    updates_[static_cast<size_t>(member)].extract(state.buffers[0], state.slots(),
                                                  reference_.arguments(before, own.sums()));
    return state;
  }

 private:
  size_t first_node(int member) const {
    size_t node = 0;
    for (int before = 0; before < member; ++before) node += shape().nodes_of(before).size();
    return node;
  }
  std::span<float> buffer(int member, size_t index) const {
    return index == 0 ? handle(member).parameters() : handle(member).slot(index - 1);
  }
  compute::Range range(int member, size_t tile) const {
    return shape().tile(shape().first_tile(member) + tile);
  }
  // Of a tile, what no update would write, from one share of it to another.
  void spoil(int member, size_t tile, double from, double to) {
    const compute::Range all = range(member, tile);
    const auto at = [&](double share) {
      return all.begin + static_cast<size_t>(share * static_cast<double>(all.size()));
    };
    for (size_t i = 0; i <= shape().slots; ++i)
      for (size_t k = at(from); k < at(to); ++k) buffer(member, i)[k] = std::nanf("");
  }
  void write(int member, size_t tile) {
    const compute::Range all = range(member, tile);
    for (size_t i = 0; i <= shape().slots; ++i)
      std::copy(next_.buffers[i].begin() + static_cast<std::ptrdiff_t>(all.begin),
                next_.buffers[i].begin() + static_cast<std::ptrdiff_t>(all.end),
                buffer(member, i).begin() + static_cast<std::ptrdiff_t>(all.begin));
  }
  void update(uint64_t step, int member, const Place& to) {
    if (to.at == Place::At::nothing || to.at == Place::At::contributed) return;
    updates_[static_cast<size_t>(member)].measure(
        member, reference_.arguments(step, handle(member).sums()));
    const size_t first = shape().first_tile(member);
    const size_t count = to.at == Place::At::finished ? tiles(member) : to.tile + 1;
    for (size_t tile = 0; tile < count; ++tile) {
      EXPECT_TRUE(handle(member).begin_tile(step, member, first + tile));
      const bool whole = tile + 1 < count || to.at == Place::At::finished;
      if (whole || to.at == Place::At::updated) write(member, tile);
      if (!whole && to.at == Place::At::torn) spoil(member, tile, 0.25, 0.75);
    }
    if (to.at != Place::At::finished) return;
    EXPECT_TRUE(handle(member).finish_slice(step, member));
  }

  const Reference& reference_;
  Reference::State next_;  // after the step that is to be torn
  std::vector<std::unique_ptr<SharedState>> handles_;
  std::vector<SliceUpdate> updates_;
};

class TornStepTest : public ::testing::TestWithParam<std::tuple<int, size_t>> {
 protected:
  int members() const { return std::get<0>(GetParam()); }
  size_t floats() const { return std::get<1>(GetParam()); }

  // Stops the members there, and looks at what each of them would go on with.
  void tear(const Reference& reference, const std::vector<Place>& places) {
    Reference::State expected = reference.initial(kStep - 1);
    Group group(reference, members(), expected);
    group.make_whole_step(kStep - 1);  // so that logs and words are not empty
    reference.advance(expected);
    group.go(kStep, places);
    const bool all_contributed = std::ranges::all_of(places, contributed);
    const bool done = std::ranges::all_of(
        places, [](const Place& place) { return place.at == Place::At::finished; });
    EXPECT_EQ(group.handle(0).all_contributed(kStep), all_contributed);
    EXPECT_EQ(group.handle(0).done(kStep), done);

    const int survivor = members() - 1;
    group.handle(survivor).fence();
    for (int member = 0; member < members(); ++member) {
      EXPECT_TRUE(group.handle(member).fenced());
      group.sleepwalk(kStep, member, places[static_cast<size_t>(member)]);
    }
    EXPECT_EQ(group.handle(0).must_complete(), all_contributed && !done);
    if (all_contributed) reference.advance(expected);
    for (int member = 0; member < members(); ++member)
      ASSERT_TRUE(group.extract(member) == expected) << "what member " << member << " has";
  }
};

// Others may be anywhere meanwhile: beyond contributing only if all have contributed.
TEST_P(TornStepTest, EverySurvivorHasOneWholeStep) {
  int number = 0;
  for (const auto& optimizer : testing::optimizers())
    for (const int replicas : {1, 5}) {
      const Reference reference(optimizer, floats(), replicas);
      const SharedState::Shape shape = reference.shape(members());
      const auto places_of = [&](int member) {
        return places(shape.first_tile(member + 1) - shape.first_tile(member));
      };
      for (int lost = 0; lost < members(); ++lost)
        for (const Place& place : places_of(lost))
          for (const int others : {0, 1, 2, 3}) {
            std::vector<Place> all;
            for (int member = 0; member < members(); ++member) {
              const auto possible = places_of(member);
              // Anything at all, by turns; or what has just begun; or what is about to end.
              const size_t which = others == 0   ? 1
                                   : others == 1 ? possible.size() - 1
                                                 : static_cast<size_t>(++number) % possible.size();
              all.push_back(member == lost ? place : possible[which]);
            }
            if (!std::ranges::all_of(all, contributed))
              for (Place& one : all)
                if (contributed(one)) one = {Place::At::contributed};
            SCOPED_TRACE(testing::name_of(optimizer) + ", " + std::to_string(replicas) +
                         " replicas, member " + std::to_string(lost) + " at " +
                         std::to_string(static_cast<int>(place.at)) + " of tile " +
                         std::to_string(place.tile));
            tear(reference, all);
            if (HasFailure()) return;
          }
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, TornStepTest,
                         ::testing::Combine(::testing::Range(1, 5),
                                            ::testing::Values(3, 1024, 2500, 5 * 1024 + 300)),
                         [](const auto& info) {
                           return std::to_string(std::get<0>(info.param)) + "_members_" +
                                  std::to_string(std::get<1>(info.param)) + "_floats";
                         });

TEST(SharedStateTest, EveryTileIsOneMembers) {
  for (int members = 1; members < 9; ++members)
    for (const size_t floats : {1, 1023, 1024, 1025, 10000}) {
      SharedState::Shape shape;
      shape.members = members;
      shape.floats = floats;
      EXPECT_EQ(shape.first_tile(0), 0u);
      EXPECT_EQ(shape.first_tile(members), shape.tiles());
      for (int member = 0; member < members; ++member)
        EXPECT_LE(shape.first_tile(member), shape.first_tile(member + 1));
      size_t next = 0;
      for (size_t tile = 0; tile < shape.tiles(); ++tile) {
        EXPECT_EQ(shape.tile(tile).begin, next);
        next = shape.tile(tile).end;
      }
      EXPECT_EQ(next, floats);
    }
}

TEST(SharedStateTest, OnlyTheStepItStandsAtIsContributedTo) {
  const Reference reference(compute::Sgd{}, 100, 2);
  Group group(reference, 2, reference.initial(kStep));
  EXPECT_FALSE(group.handle(0).contribute(kStep - 1));
  EXPECT_FALSE(group.handle(0).contribute(kStep + 1));
  EXPECT_FALSE(group.handle(0).done(kStep));
  group.make_whole_step(kStep);
  EXPECT_TRUE(group.handle(1).done(kStep));
  EXPECT_FALSE(group.handle(0).contribute(kStep));
}

TEST(SharedStateTest, WhatNobodyCanHaveComeToCountsAsNothing) {
  const Reference reference(compute::Sgd{}, 100, 3);
  const auto state = SharedState::make(reference.shape(1), 0, 0);
  state->set_sums(0, compute::testing::classified(0.5, 1, 2));
  state->set_sums(1, compute::testing::classified(0.5, 3, -2));
  state->set_sums(2, compute::testing::classified(0.25, 4, 4));
  EXPECT_EQ(state->sums().loss, 0.75);
  EXPECT_EQ(state->sums().terms[0], 5);
  EXPECT_EQ(state->sums().rows, 6);
}

TEST(SharedStateTest, WhoWaitsComesBackWhenItIsFencedOrStopped) {
  const Reference reference(compute::Sgd{}, 100, 1);
  const auto state = SharedState::make(reference.shape(1), 0, 0);
  const auto never = [] { return false; };
  std::stop_source stop;
  EXPECT_FALSE(state->wait(never, stop.get_token(), std::chrono::milliseconds(1)));
  stop.request_stop();
  EXPECT_FALSE(state->wait(never, stop.get_token(), std::chrono::hours(1)));
  EXPECT_TRUE(state->wait([] { return true; }, {}, std::chrono::hours(1)));
  state->fence();
  EXPECT_TRUE(state->wait(never, {}, std::chrono::hours(1)));
}

class OfferTest : public ::testing::Test {
 protected:
  OfferTest() : reference_(compute::Adam{}, 3000, 3) {
    state_ = SharedState::make(reference_.shape(1), kStep, 0);
  }
  std::string refusal(const SharedState::Offer& offer, const SharedState::Shape& shape) {
    try {
      SharedState::open(shape, offer);
    } catch (const Invalid& error) {
      return error.what();
    }
    return "";
  }
  std::string refusal(const SharedState::Offer& offer) {
    return refusal(offer, reference_.shape(1));
  }

  const Reference reference_;
  std::unique_ptr<SharedState> state_;
};

TEST_F(OfferTest, AnotherNonceIsAnotherGenerations) {
  SharedState::Offer offer = state_->offer();
  EXPECT_EQ(refusal(offer), "");
  ++offer.nonce;
  EXPECT_THAT(refusal(offer), HasSubstr("another group's, or of another generation"));
}

TEST_F(OfferTest, AnotherShapeIsRefused) {
  SharedState::Shape shape = reference_.shape(1);
  shape.floats = 1000;
  EXPECT_THAT(refusal(state_->offer(), shape), HasSubstr("bytes, found"));
  shape = reference_.shape(1);
  shape.floats -= 64;  // in as many pages
  EXPECT_THAT(refusal(state_->offer(), shape), HasSubstr("another group's"));
  shape = reference_.shape(1);
  shape.replicas = 4;
  EXPECT_THAT(refusal(state_->offer(), shape), HasSubstr("another group's"));
  shape = reference_.shape(1);
  shape.rounded = true;
  EXPECT_THAT(refusal(state_->offer(), shape), HasSubstr("another group's"));
  shape = reference_.shape(2);
  EXPECT_THAT(refusal(state_->offer(), shape), HasSubstr("bytes, found"));
}

TEST_F(OfferTest, WhatIsNoStateIsRefused) {
  SharedState::Offer offer = state_->offer();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  offer.fd = static_cast<uint32_t>(ends[0]);
  EXPECT_THAT(refusal(offer), HasSubstr("not on this host"));
  close(ends[0]);
  close(ends[1]);
  EXPECT_THAT(refusal(offer), HasSubstr("not on this host"));
  offer = state_->offer();
  offer.pid = 0;
  EXPECT_THAT(refusal(offer), HasSubstr("not on this host"));
}

TEST_F(OfferTest, MemoryThatIsNoStateIsRefused) {
  const int fd = static_cast<int>(state_->offer().fd);
  const auto size = static_cast<size_t>(lseek(fd, 0, SEEK_END));
  const Descriptor zeros = make_shared_memory("muster-collective", size);
  SharedState::Offer offer = state_->offer();
  offer.fd = static_cast<uint32_t>(zeros.get());
  offer.nonce = 0;
  EXPECT_THAT(refusal(offer), HasSubstr("another group's"));
  const Descriptor other = make_shared_memory("muster", size);
  offer.fd = static_cast<uint32_t>(other.get());
  EXPECT_THAT(refusal(offer), HasSubstr("not on this host"));
}

}  // namespace
}  // namespace muster::collective
