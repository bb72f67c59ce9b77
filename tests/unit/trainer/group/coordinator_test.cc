#include "trainer/group/coordinator.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <thread>

#include "common/error.h"
#include "tests/unit/common/net/listener.h"
#include "tests/unit/common/temporary_folder.h"
#include "tests/unit/trainer/group/identity_of_tests.h"
#include "trainer/folder/generations.h"
#include "trainer/folder/owner.h"

namespace muster::group {
namespace {

using std::chrono::milliseconds;

// Generations that need nobody.
class EmptyFormation : public Formation {
 public:
  void claimed(uint64_t generation) override {
    claimed_ = generation;
    begin(generation);
    proceed(Next::fence);
  }
  void fenced() { proceed(Next::choose); }
  void chosen(const std::optional<Checkpoint>&) override { proceed(Next::run); }
  void running() { proceed(Next::watch); }
  uint64_t generation() const { return claimed_; }

 private:
  uint64_t claimed_ = 0;
};

// The coordinator of such generations; `trouble` is called before each generation runs.
class EmptyCoordinator : public Coordinator {
 public:
  EmptyCoordinator(RendezvousServer& rendezvous, const checkpoint::Store& store, Setup setup,
                   std::function<void(uint64_t generation)> trouble)
      : Coordinator(rendezvous, store, std::move(setup)), trouble_(std::move(trouble)) {
    start();
  }
  ~EmptyCoordinator() override { stop(); }
  // As if a replica came or was lost.
  void lose() { lost_ = true; }

 private:
  Formation& formation() override { return formation_; }
  void look(const PeerRegistry&) override {
    if (lost_.exchange(false)) formation_.renew();
  }
  void act() override {
    if (formation_.next() == Formation::Next::fence) return formation_.fenced();
    if (trouble_) trouble_(formation_.generation());
    rendezvous().update([&](GroupView& view) {
      view.set_generation(formation_.generation());
      view.set_phase(GroupView::RUNNING);
    });
    formation_.running();
  }
  std::string change() const override { return "a test"; }

  const std::function<void(uint64_t)> trouble_;
  std::atomic<bool> lost_{false};
  EmptyFormation formation_;
};

class CoordinatorTest : public testing::Test {
 protected:
  void begin(std::function<void(uint64_t)> trouble = {}) {
    Coordinator::Setup setup;
    setup.storage = folder_.path();
    setup.job_uid = "u";
    coordinator_.emplace(server_, store_, setup, std::move(trouble));
  }
  GroupView await(const std::function<bool(const GroupView&)>& ready) const {
    for (;;) {
      const GroupView view = server_.view();
      if (ready(view)) return view;
      std::this_thread::sleep_for(milliseconds(5));
    }
  }
  void await_running(uint64_t generation) const {
    await([&](const GroupView& view) {
      return view.phase() == GroupView::RUNNING && view.generation() == generation;
    });
  }
  // Returns the coordinator's error, once it has one.
  std::exception_ptr await_failure() const {
    for (;;) {
      try {
        coordinator_->rethrow_failure();
      } catch (...) {
        return std::current_exception();
      }
      std::this_thread::sleep_for(milliseconds(5));
    }
  }

  static PeerRegistry::Expected expected() {
    PeerRegistry::Expected expected;
    expected.job_uid = "u";
    return expected;
  }
  const test::TemporaryFolder folder_;
  RendezvousServer server_{free_address(), identity_of_tests(), expected()};
  checkpoint::Store store_{folder_.path() / "checkpoints", 2};
  std::optional<EmptyCoordinator> coordinator_;
};

TEST_F(CoordinatorTest, OpensGenerationsUntilItIsHeld) {
  begin();
  await_running(1);
  coordinator_->renew();
  await_running(2);
  EXPECT_EQ(coordinator_->hold(), 2u);
  coordinator_->renew();
  await([](const GroupView& view) { return view.phase() == GroupView::FORMING; });
  EXPECT_EQ(coordinator_->hold(), 2u);
  EXPECT_EQ(folder::newest_generation(folder_.path()), 2u);
  EXPECT_NO_THROW(coordinator_->rethrow_failure());
}

TEST_F(CoordinatorTest, TheGroupFormsWhileTheNextGenerationIsOpened) {
  std::atomic<int> phase{-1};
  begin([&](uint64_t generation) {
    if (generation == 2) phase = server_.view().phase();
  });
  await_running(1);
  coordinator_->lose();
  await_running(2);
  EXPECT_EQ(phase, GroupView::FORMING);
}

TEST_F(CoordinatorTest, EndsTheCheckpointsThatAnEarlierGenerationHasBegun) {
  const std::filesystem::path begun = store_.begin(7);
  EXPECT_TRUE(std::filesystem::exists(begun));
  begin();
  await_running(1);
  EXPECT_FALSE(std::filesystem::exists(begun));
}

TEST_F(CoordinatorTest, WhatCanBeTriedAgainIsTriedInTheNextGeneration) {
  begin([](uint64_t generation) {
    if (generation == 1) throw Unavailable("a ps was lost");
  });
  await_running(2);
  EXPECT_NO_THROW(coordinator_->rethrow_failure());
}

TEST_F(CoordinatorTest, TellsTheGroupWhatTheUserMustChange) {
  begin([](uint64_t) { throw Invalid("no such file", 66); });
  const GroupView view =
      await([](const GroupView& view) { return view.phase() == GroupView::FAILED; });
  EXPECT_EQ(view.exit_code(), 66u);
  EXPECT_EQ(view.message(), "no such file");
  EXPECT_THROW(coordinator_->rethrow_failure(), Invalid);
}

TEST_F(CoordinatorTest, AStorageThatItAloneCannotWriteIsNoErrorOfTheGroup) {
  begin([](uint64_t) { throw WriteError("cannot write", EACCES); });
  EXPECT_THROW(std::rethrow_exception(await_failure()), WriteError);
  await([](const GroupView& view) { return view.phase() == GroupView::FORMING; });
}

// It looks from time to time while its generation runs.
TEST_F(CoordinatorTest, LooksWhetherItStillLeads) {
  begin();
  await_running(1);
  folder::open_generation(folder_.path(), 0);
  const GroupView view =
      await([](const GroupView& view) { return view.phase() == GroupView::FORMING; });
  EXPECT_EQ(view.generation(), 0u) << "peers look for another leader";
  EXPECT_THROW(std::rethrow_exception(await_failure()), Unavailable);
}

TEST_F(CoordinatorTest, OpensNoGenerationAboveThatOfAnotherLeader) {
  begin();
  await_running(1);
  folder::open_generation(folder_.path(), 0);
  coordinator_->renew();
  EXPECT_THROW(std::rethrow_exception(await_failure()), Unavailable);
  EXPECT_EQ(folder::newest_generation(folder_.path()), 2u);
}

TEST_F(CoordinatorTest, NamesTheJobThatHasTakenItsFolder) {
  begin();
  await_running(1);
  folder::Owner other;
  other.uid = "other";
  folder::write_owner(folder_.path(), other);
  folder::open_generation(folder_.path(), 0);
  coordinator_->renew();
  EXPECT_THROW(std::rethrow_exception(await_failure()), Invalid);
}

TEST(GroupViewTest, WhoStepsDownEndsNoViewThatHasEnded) {
  for (const auto phase : {GroupView::FINISHED, GroupView::FAILED}) {
    GroupView view;
    view.set_phase(phase);
    view.set_generation(3);
    suspend(view);
    step_down(view);
    EXPECT_EQ(view.phase(), phase);
    EXPECT_EQ(view.generation(), 3u);
  }
  GroupView view;
  view.set_phase(GroupView::RUNNING);
  view.set_generation(3);
  suspend(view);
  EXPECT_EQ(view.phase(), GroupView::FORMING);
  EXPECT_EQ(view.generation(), 3u);
  step_down(view);
  EXPECT_EQ(view.generation(), 0u);
}

}  // namespace
}  // namespace muster::group
