#include "trainer/group/leader_address_file.h"

#include <gmock/gmock.h>

#include "common/system/file.h"
#include "tests/unit/common/net/listener.h"
#include "tests/unit/trainer/group/identity_of_tests.h"
#include "trainer/group/rendezvous_server.h"

namespace muster::group {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

// Of a job whose names are in no DNS.
class LeaderAddressTest : public testing::Test {
 protected:
  LeaderAddressTest() {
    fs::remove_all(storage_);
    fs::create_directories(storage_);
  }

  Membership member(Role role, const std::string& pod_ip = "127.0.0.1") const {
    Membership membership;
    membership.uid = "u";
    membership.role = role;
    membership.cluster.chief = {"chief.test.invalid:" + std::to_string(port_)};
    membership.cluster.workers = {"worker.test.invalid:" + std::to_string(port_)};
    membership.cluster.ps = {"ps.test.invalid:" + std::to_string(port_)};
    membership.storage = storage_;
    membership.pod_ip = pod_ip;
    membership.identity = identity_of_tests();
    return membership;
  }
  std::string at(int port) const { return "127.0.0.1:" + std::to_string(port); }
  std::unique_ptr<RendezvousServer> serve(int port, const std::string& uid = "u") const {
    PeerRegistry::Expected expected;
    expected.job_uid = uid;
    expected.workers = 1;
    auto server = std::make_unique<RendezvousServer>(at(port), identity_of_tests(), expected);
    server->update([](GroupView& view) { view.set_phase(GroupView::RUNNING); });
    return server;
  }
  std::unique_ptr<RendezvousClient> attend() const {
    Hello hello;
    hello.set_job_uid("u");
    hello.set_role("worker");
    const Membership worker = member(Role::worker);
    return std::make_unique<RendezvousClient>(
        ways_to_rendezvous(worker), worker.rendezvous_address(), hello, RendezvousClient::Report());
  }
  static bool joins(const RendezvousClient& client, milliseconds wait = milliseconds(20000)) {
    const auto running = [](const GroupView& view) { return view.phase() == GroupView::RUNNING; };
    return running(client.wait(running, {}, wait, milliseconds(60000)));
  }
  void post(const std::string& text) const {
    write_file_atomically(storage_ / "rendezvous.json", text);
  }
  // As rank 0 leaves it when it is killed.
  void post(const std::string& uid, int port) const {
    post(R"({"jobUid": ")" + uid + R"(", "address": ")" + at(port) + R"(", "process": "1"})");
  }

  const fs::path storage_ = fs::path(testing::TempDir()) / "address_file";
  const int port_ = free_port();
};

TEST_F(LeaderAddressTest, StandsAsLongAsRankZeroListens) {
  {
    const LeaderAddressFile file(member(Role::chief));
    const auto entry = LeaderAddressFile::read(storage_, "u");
    ASSERT_TRUE(entry);
    EXPECT_EQ(entry->address, at(port_));
    EXPECT_FALSE(LeaderAddressFile::read(storage_, "another job"));
  }
  EXPECT_FALSE(LeaderAddressFile::read(storage_, "u"));
  const LeaderAddressFile needless(member(Role::chief, ""));
  EXPECT_FALSE(fs::exists(storage_ / "rendezvous.json"));
}

TEST_F(LeaderAddressTest, WhoLeavesTakesDownNobodyElses) {
  auto first = std::make_unique<LeaderAddressFile>(member(Role::chief));
  const auto of_first = LeaderAddressFile::read(storage_, "u");
  const LeaderAddressFile second(member(Role::chief));
  first.reset();
  ASSERT_TRUE(LeaderAddressFile::read(storage_, "u"));
  EXPECT_NE(LeaderAddressFile::read(storage_, "u"), of_first);
}

TEST_F(LeaderAddressTest, NeedsNoStorageThatCanBeWritten) {
  Membership chief = member(Role::chief);
  chief.storage /= "not there";
  const LeaderAddressFile file(chief);
  EXPECT_FALSE(LeaderAddressFile::read(chief.storage, "u"));
}

TEST_F(LeaderAddressTest, WhatSaysNothingIsNothing) {
  for (const std::string text :
       {"", "nothing", "[]", R"({"jobUid": "u"})", R"({"jobUid": "u", "address": 5})",
        R"({"jobUid": "u", "address": "nowhere"})", R"({"jobUid": 1, "address": "1.2.3.4:5"})"}) {
    post(text);
    EXPECT_FALSE(LeaderAddressFile::read(storage_, "u")) << text;
  }
  post(std::string(100000, ' ') + R"({"jobUid": "u", "address": "1.2.3.4:5"})");
  EXPECT_FALSE(LeaderAddressFile::read(storage_, "u"));
  fs::remove(storage_ / "rendezvous.json");
  fs::create_directory(storage_ / "rendezvous.json");
  EXPECT_FALSE(LeaderAddressFile::read(storage_, "u"));
}

TEST_F(LeaderAddressTest, LeadsThereWhereTheNameDoesNot) {
  const auto peer = attend();
  EXPECT_FALSE(joins(*peer, milliseconds(300)));
  const auto server = serve(port_);
  const LeaderAddressFile file(member(Role::chief));
  EXPECT_TRUE(joins(*peer));
}

TEST_F(LeaderAddressTest, OneThatNobodyTookDownKeepsNobodyFromTheNext) {
  post("u", free_port());  // where nobody listens
  const auto peer = attend();
  EXPECT_FALSE(joins(*peer, milliseconds(300)));
  const auto server = serve(port_);
  const LeaderAddressFile file(member(Role::chief));
  EXPECT_TRUE(joins(*peer));
}

TEST_F(LeaderAddressTest, AnotherJobAtItsAddressIsNoReasonToGiveUp) {
  const int other_port = free_port();
  const auto other = serve(other_port, "another job");
  post("u", other_port);
  const auto peer = attend();
  EXPECT_FALSE(joins(*peer, milliseconds(1000)));
  const auto server = serve(port_);
  const LeaderAddressFile file(member(Role::chief));
  EXPECT_TRUE(joins(*peer));
}

TEST_F(LeaderAddressTest, LeadsThereAgainAfterABreak) {
  const auto peer = attend();
  const LeaderAddressFile file(member(Role::chief));
  for (int restart = 0; restart < 2; ++restart) {
    const auto server = serve(port_);
    EXPECT_TRUE(joins(*peer)) << restart;
    const auto connected = [&] { return peer->connected(); };
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!connected() && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(milliseconds(10));
    EXPECT_TRUE(connected()) << restart;
  }
}

}  // namespace
}  // namespace muster::group
