#include "trainer/loop/synchronizers/group_wait.h"

#include <gmock/gmock.h>

#include "common/error.h"
#include "tests/unit/common/net/listener.h"
#include "tests/unit/trainer/group/identity_of_tests.h"
#include "trainer/group/rendezvous_server.h"

namespace muster::loop {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// The only member of a group whose phases the test makes up.
class GroupWaitTest : public testing::Test {
 protected:
  GroupWaitTest() {
    Hello hello;
    hello.set_job_uid("u");
    hello.set_role("chief");
    client_.emplace(server_.local_channel(), "ourselves", hello, group::RendezvousClient::Report{});
  }
  void set(GroupView::Phase phase, uint64_t generation) {
    server_.update([&](GroupView& view) {
      view.set_phase(phase);
      view.set_generation(generation);
      view.set_exit_code(66);
      view.set_message("no data");
    });
    client_->wait([&](const GroupView& view) { return view.phase() == phase; }, {},
                  std::chrono::minutes(1), std::chrono::minutes(1));
  }
  GroupWait make(GroupWait::Setup setup = {}) { return {*client_, std::move(setup)}; }

  static bool is_running(const GroupView& view) { return view.phase() == GroupView::RUNNING; }

  std::stop_source stop_;

 private:
  static group::PeerRegistry::Expected expected() {
    group::PeerRegistry::Expected expected;
    expected.job_uid = "u";
    return expected;
  }
  group::RendezvousServer server_{free_address(), group::identity_of_tests(), expected()};
  std::optional<group::RendezvousClient> client_;
};

TEST_F(GroupWaitTest, ReturnsTheViewThatAsksForSomething) {
  set(GroupView::RUNNING, 4);
  GroupWait wait = make();
  const auto view = wait.wait(is_running, stop_.get_token());
  ASSERT_TRUE(view);
  EXPECT_EQ(view->generation(), 4u);
  EXPECT_FALSE(wait.finished());
}

TEST_F(GroupWaitTest, EndsWithTheTraining) {
  set(GroupView::FINISHED, 4);
  GroupWait wait = make();
  EXPECT_FALSE(wait.wait(is_running, stop_.get_token()));
  EXPECT_TRUE(wait.finished());
}

TEST_F(GroupWaitTest, EndsWhenTrainingHasFinishedWithoutUs) {
  bool finished = true;
  GroupWait::Setup setup;
  setup.finished_without_us = [&] { return finished; };
  GroupWait wait = make(setup);
  EXPECT_FALSE(wait.wait(is_running, stop_.get_token()));
  EXPECT_TRUE(wait.finished());
  EXPECT_TRUE(wait.is_over([](const GroupView&) { return false; }));
  finished = false;
  EXPECT_FALSE(wait.is_over([](const GroupView&) { return false; }));
  EXPECT_TRUE(wait.is_over([](const GroupView&) { return true; }));
  set(GroupView::RUNNING, 4);
  EXPECT_TRUE(wait.wait(is_running, stop_.get_token()));
  EXPECT_FALSE(wait.finished());
}

TEST_F(GroupWaitTest, EndsWithAStopThatIsNoEndOfTheTraining) {
  stop_.request_stop();
  GroupWait wait = make();
  EXPECT_FALSE(wait.wait(is_running, stop_.get_token()));
  EXPECT_FALSE(wait.finished());
}

TEST_F(GroupWaitTest, ThrowsWhatTheGroupHasFailedWith) {
  set(GroupView::FAILED, 0);
  GroupWait wait = make();
  const auto waits = [&] { wait.wait(is_running, stop_.get_token()); };
  EXPECT_THAT(waits, ThrowsMessage<Invalid>(HasSubstr("the group has failed: no data")));
  try {
    waits();
  } catch (const Invalid& error) {
    EXPECT_EQ(error.exit_code(), 66);
  }
}

TEST_F(GroupWaitTest, OfRankZeroThrowsItsCoordinatorsError) {
  GroupWait::Setup setup;
  setup.rethrow_failure = [] { throw Unavailable("we were taken for lost"); };
  GroupWait wait = make(setup);
  EXPECT_THROW(wait.wait(is_running, stop_.get_token()), Unavailable);
}

}  // namespace
}  // namespace muster::loop
