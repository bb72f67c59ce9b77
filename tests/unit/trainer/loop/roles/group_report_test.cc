#include "trainer/loop/roles/group_report.h"

#include <gtest/gtest.h>

#include "common/net/http_get.h"
#include "tests/unit/common/net/listener.h"
#include "tests/unit/trainer/group/identity_of_tests.h"
#include "trainer/group/grpc_server.h"
#include "trainer/group/rendezvous_client.h"

namespace muster::loop {
namespace {

using std::chrono::milliseconds;

// Rank 0 of a group of a ps and a worker.
class GroupReportTest : public testing::Test {
 protected:
  static group::PeerRegistry::Expected expected() {
    group::PeerRegistry::Expected expected;
    expected.chiefs = 0;
    expected.workers = 1;
    expected.shards = 1;
    return expected;
  }
  group::RendezvousClient worker(uint32_t restarts, uint32_t last_exit_code,
                                 group::RendezvousClient::Report report = {}) {
    Hello hello;
    hello.set_role("worker");
    hello.set_attempt(2);
    hello.set_restarts(restarts);
    hello.set_last_exit_code(last_exit_code);
    hello.set_outage_milliseconds(1000);
    return {server_.local_channel(), "rank 0", hello, std::move(report)};
  }
  void commit_step() {
    ++position_.step;
    now_ += milliseconds(1000);
    recorder_.step(position_, {}, now_);
  }
  Json progress() const {
    return Json::parse(http_get(address_, "/progress", milliseconds(30'000)));
  }
  void wait_for_members(int count) {
    for (int members = -1; members != count;) {
      server_.wait_for_change(milliseconds(50));
      server_.inspect(
          [&](const group::PeerRegistry& registry) { members = registry.members_present(); });
    }
  }

  const std::string address_ = free_address();
  metrics::Reporter reporter_{address_, "chief", 0};
  Recorder recorder_{{}, reporter_, nullptr};
  group::RendezvousServer server_{free_address(), group::identity_of_tests(), expected()};
  checkpoint::Position position_;
  Recorder::Clock::time_point now_ = Recorder::Clock::now();
};

TEST_F(GroupReportTest, NamesWhoIsMissingInProgress) {
  const GroupReport report(reporter_, server_, recorder_);
  EXPECT_EQ(progress()["missing"], (Json{"ps-0", "worker-0"}));
  const group::RendezvousClient there = worker(0, 0);
  wait_for_members(1);
  EXPECT_EQ(progress()["missing"], Json::array({"ps-0"}));
  EXPECT_EQ(progress()["restartsInPlace"], Json::array());
}

TEST_F(GroupReportTest, TellsOfARestartInPlaceOnceTrainingHasGoneOn) {
  const GroupReport report(reporter_, server_, recorder_);
  recorder_.begin(position_, 100, 1);
  const group::RendezvousClient there = worker(3, 137);
  wait_for_members(1);
  EXPECT_EQ(progress()["restartsInPlace"], Json::array());
  commit_step();
  const Json told = progress()["restartsInPlace"];
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0]["replica"], "worker-0");
  EXPECT_EQ(told[0]["attempt"], 2);
  EXPECT_EQ(told[0]["restarts"], 3);
  EXPECT_EQ(told[0]["exitCode"], 137);
  EXPECT_GE(told[0]["seconds"], 1.0);
  commit_step();
  EXPECT_EQ(progress()["restartsInPlace"], Json::array({told[0]})) << "it went on before";
}

TEST_F(GroupReportTest, TellsWhatStandsStillAndWhere) {
  const GroupReport report(reporter_, server_, recorder_);
  EXPECT_FALSE(progress().contains("stalled"));
  const group::RendezvousClient there = worker(0, 0, [](PeerMessage& message) {
    StallMessage& stall = *message.add_stalls();
    stall.set_doing("taking a step");
    stall.set_since(1'767'323'045);
  });
  wait_for_members(1);
  Json told;
  while (!told.contains("stalled")) told = progress();
  EXPECT_EQ(told["stalled"], Json::array({{{"replica", "worker-0"},
                                           {"doing", "taking a step"},
                                           {"since", "2026-01-02T03:04:05Z"},
                                           {"storage", false}}}));
}

TEST_F(GroupReportTest, SaysNothingOnceItIsGone) {
  { const GroupReport report(reporter_, server_, recorder_); }
  EXPECT_FALSE(progress().contains("missing"));
}

}  // namespace
}  // namespace muster::loop
