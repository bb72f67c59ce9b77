#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "common/error.h"
#include "common/exit_code.h"
#include "proto/muster/rendezvous.grpc.pb.h"
#include "tests/unit/common/net/listener.h"
#include "tests/unit/trainer/group/identity_of_tests.h"
#include "tests/unit/trainer/group/peers.h"
#include "trainer/folder/generations.h"
#include "trainer/group/grpc_server.h"
#include "trainer/group/peer_registry.h"
#include "trainer/group/position.h"
#include "trainer/group/rendezvous_client.h"
#include "trainer/group/rendezvous_server.h"

namespace muster::group {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

class RendezvousTest : public testing::Test {
 protected:
  const std::string address_ = free_address();
  std::unique_ptr<RendezvousClient> attend(const Hello& hello) {
    return std::make_unique<RendezvousClient>(make_channel(address_, identity_of_tests()), address_,
                                              hello, RendezvousClient::Report());
  }
  static bool running(const GroupView& view) { return view.phase() == GroupView::RUNNING; }
};

TEST_F(RendezvousTest, EverybodySeesAChangeOfTheGroup) {
  RendezvousServer server(address_, identity_of_tests(), expected_peers());
  const auto worker = attend(hello_of("worker", 0));
  const auto shard = attend(hello_of("ps", 0));
  server.update([](GroupView& view) {
    view.set_phase(GroupView::RUNNING);
    view.set_generation(4);
  });
  for (const auto* peer : {worker.get(), shard.get()})
    EXPECT_EQ(peer->wait(running, {}, milliseconds(10000), milliseconds(60000)).generation(), 4u);
}

TEST_F(RendezvousTest, AStrangerIsToldWhy) {
  RendezvousServer server(address_, identity_of_tests(), expected_peers());
  Hello stranger = hello_of("worker", 0);
  stranger.set_job_uid("other");
  const auto peer = attend(stranger);
  try {
    peer->wait(running, {}, milliseconds(10000), milliseconds(60000));
    FAIL() << "expected a rejection";
  } catch (const Invalid& error) {
    EXPECT_EQ(error.exit_code(), kProtocol);
    EXPECT_THAT(error.what(), HasSubstr("expected this job's uid, found \"other\""));
  }
}

// Two live processes of one role, index and attempt: the one that came first ends.
TEST_F(RendezvousTest, AnElderProcessIsToldThatAYoungerOneHasItsPlace) {
  RendezvousServer server(address_, identity_of_tests(), expected_peers());
  const auto seen = [](const GroupView& view) { return view.generation() == 1; };
  server.update([](GroupView& view) { view.set_generation(1); });
  const auto elder = attend(process(1));
  elder->wait(seen, {}, milliseconds(10000), milliseconds(60000));
  const auto younger = attend(process(2));
  younger->wait(seen, {}, milliseconds(10000), milliseconds(60000));
  try {
    elder->wait(running, {}, milliseconds(10000), milliseconds(60000));
    FAIL() << "expected a rejection";
  } catch (const Invalid& error) {
    EXPECT_EQ(error.exit_code(), kProtocol);
    EXPECT_THAT(error.what(), HasSubstr("worker 0, attempt 0, found one that a younger process"));
  }
  server.update([](GroupView& view) { view.set_phase(GroupView::RUNNING); });
  younger->wait(running, {}, milliseconds(10000), milliseconds(60000));
  EXPECT_TRUE(younger->connected());
}

TEST_F(RendezvousTest, WhoMayBeTheElderWaitsUntilThePlaceIsFree) {
  RendezvousServer server(address_, identity_of_tests(), expected_peers());
  server.update([](GroupView& view) { view.set_phase(GroupView::RUNNING); });
  auto younger = attend(process(2, 2000));
  younger->wait(running, {}, milliseconds(10000), milliseconds(60000));
  const auto elder = attend(process(1, 1000));
  try {
    for (int look = 0; look < 100; ++look)
      elder->wait(running, {}, milliseconds(100), milliseconds(200));
    FAIL() << "expected to be put off";
  } catch (const Unavailable& error) {
    EXPECT_THAT(error.what(), HasSubstr("has not let this replica join"));
    EXPECT_THAT(error.what(), HasSubstr("1000 ms before the one that attends"));
  }
  EXPECT_TRUE(younger->connected());
  younger.reset();
  EXPECT_TRUE(running(elder->wait(running, {}, milliseconds(10000), milliseconds(60000))));
}

TEST_F(RendezvousTest, WhoWasPutOffIsToldWhenNobodyAnswersAnyMore) {
  auto server = std::make_unique<RendezvousServer>(address_, identity_of_tests(), expected_peers());
  server->update([](GroupView& view) { view.set_phase(GroupView::RUNNING); });
  const auto younger = attend(process(2, 2000));
  younger->wait(running, {}, milliseconds(10000), milliseconds(60000));
  const auto channel = make_channel(address_, identity_of_tests());
  std::atomic<bool> last_reached{false};
  const RendezvousClient elder(
      [&](bool reached) {
        last_reached = reached;
        return RendezvousClient::Way{channel};
      },
      address_, process(1, 1000), RendezvousClient::Report());
  const auto complaint_with = [&](const std::string& words) {
    std::string complaint;
    for (int look = 0; look < 100 && complaint.find(words) == std::string::npos; ++look) {
      try {
        elder.wait(running, {}, milliseconds(100), milliseconds(0));
      } catch (const Unavailable& error) {
        complaint = error.what();
      }
    }
    return complaint;
  };
  EXPECT_THAT(complaint_with("join"), HasSubstr("has not let this replica join"));
  server.reset();
  EXPECT_THAT(complaint_with("answered"), HasSubstr("has not answered"));
  for (int look = 0; look < 100 && last_reached; ++look)
    std::this_thread::sleep_for(milliseconds(100));
  EXPECT_FALSE(last_reached);
}

TEST_F(RendezvousTest, WhatIsSaidLastReachesAPeerThatIsBeingToldOfBefore) {
  auto server = std::make_unique<RendezvousServer>(address_, identity_of_tests(), expected_peers());
  const auto finished = [](const GroupView& view) { return view.phase() == GroupView::FINISHED; };
  const auto peer = attend(hello_of("ps", 0));
  server->update([](GroupView& view) { view.set_generation(1); });
  peer->wait([](const GroupView& view) { return view.generation() == 1; }, {}, milliseconds(10000),
             milliseconds(60000));
  for (uint64_t generation = 2; generation < 100; ++generation)
    server->update([&](GroupView& view) { view.set_generation(generation); });
  server->update([](GroupView& view) { view.set_phase(GroupView::FINISHED); });
  server.reset();
  EXPECT_TRUE(finished(peer->wait(finished, {}, milliseconds(1000), milliseconds(60000))));
}

TEST_F(RendezvousTest, AStreamThatDoesNotSayWhoItIsFromIsEnded) {
  const RendezvousServer server(address_, identity_of_tests(), expected_peers(), milliseconds(100));
  const auto stub = Rendezvous::NewStub(make_channel(address_, identity_of_tests()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  const auto stream = stub->Attend(&context);
  GroupMessage message;
  EXPECT_FALSE(stream->Read(&message));
  EXPECT_NE(stream->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
}

// Neither one that would not believe us, nor one that knows our certificate, which is no secret.
TEST_F(RendezvousTest, AStrangerIsToldNothing) {
  const KeyPair ours = make_key_pair(), theirs = make_key_pair();
  const RendezvousServer server(address_, identity_of(ours), expected_peers());
  const auto who_believes_us = [&](const std::string& key, const std::string& certificate) {
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride(KeyPair::kHost);
    return grpc::CreateCustomChannel(
        address_, grpc::SslCredentials({ours.certificate, key, certificate}), arguments);
  };
  const std::shared_ptr<grpc::Channel> strangers[] = {
      make_channel(address_, identity_of(theirs)), make_channel(address_, Identity()),
      who_believes_us("", ""), who_believes_us(theirs.key, theirs.certificate)};
  for (const auto& stranger : strangers) {
    const auto stub = Rendezvous::NewStub(stranger);
    grpc::ClientContext context;
    const auto stream = stub->Attend(&context);
    PeerMessage message;
    *message.mutable_hello() = hello_of("worker", 0);
    stream->Write(message);
    GroupMessage answer;
    EXPECT_FALSE(stream->Read(&answer));
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  }
  server.inspect([](const PeerRegistry& registry) { EXPECT_EQ(registry.members_present(), 0); });
  const auto stub = Rendezvous::NewStub(who_believes_us(ours.key, ours.certificate));
  grpc::ClientContext context;
  const auto stream = stub->Attend(&context);
  PeerMessage message;
  *message.mutable_hello() = hello_of("worker", 0);
  stream->Write(message);
  GroupMessage answer;
  EXPECT_TRUE(stream->Read(&answer)) << "who has the key is told";
  context.TryCancel();
}

// A peer that reads nothing, and is told more than a connection then takes.
class SilentReaderTest : public RendezvousTest {
 protected:
  SilentReaderTest() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 1 << 16);
    stub_ = Rendezvous::NewStub(
        grpc::CreateCustomChannel(address_, grpc::InsecureChannelCredentials(), arguments));
    stream_ = stub_->Attend(&context_);
    server_.update([&](GroupView& view) { view.set_message(much_); });
  }

  void say(const PeerMessage& message) { EXPECT_TRUE(stream_->Write(message)); }
  void await_members(int members) {
    const auto present = [&] {
      int count = 0;
      server_.inspect([&](const PeerRegistry& registry) { count = registry.members_present(); });
      return count;
    };
    for (int look = 0; look < 100 && present() != members; ++look)
      server_.wait_for_change(milliseconds(200));
    EXPECT_EQ(present(), members);
    server_.wait_for_change(milliseconds(0));  // seen
  }
  GroupMessage read() {
    GroupMessage message;
    EXPECT_TRUE(stream_->Read(&message));
    return message;
  }
  // The stream's end is the server's next change.
  void expect_ended() {
    server_.wait_for_change(milliseconds(20000));
    GroupMessage message;
    EXPECT_FALSE(stream_->Read(&message));
  }

  const std::string much_ = std::string(1 << 20, 'x');

 private:
  RendezvousServer server_{address_, Identity(), expected_peers(), milliseconds(100)};
  std::unique_ptr<Rendezvous::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<PeerMessage, GroupMessage>> stream_;
};

// A long rejection would stay unwritten as long as nobody reads it.
TEST_F(SilentReaderTest, IsToldLittleWhenItMayNotJoin) {
  await_members(0);
  PeerMessage stranger;
  *stranger.mutable_hello() = hello_of("worker", 0);
  stranger.mutable_hello()->set_job_uid(much_);
  say(stranger);
  EXPECT_THAT(read().rejected(), testing::AllOf(HasSubstr("expected this job's uid"),
                                                testing::SizeIs(testing::Le(kMostTold))));
  expect_ended();
}

TEST_F(SilentReaderTest, IsSentAwayWhenItSaysWhatCannotBe) {
  PeerMessage worker;
  *worker.mutable_hello() = hello_of("worker", 0);
  say(worker);
  await_members(1);
  PeerMessage nonsense;
  nonsense.mutable_member()->set_generation(~uint64_t{0});
  say(nonsense);
  await_members(0);
  expect_ended();
}

// So many that each is dropped for a later one. The peer has come among them, and stays.
TEST_F(RendezvousTest, ManyStrangersThatSayNothingDisturbNobody) {
  RendezvousServer server(address_, identity_of_tests(), expected_peers());
  server.update([](GroupView& view) { view.set_phase(GroupView::RUNNING); });
  const int port = std::stoi(address_.substr(address_.rfind(':') + 1));
  const auto crowd = [&] {
    std::vector<Descriptor> strangers;
    for (int i = 0; i < 300; ++i) strangers.push_back(connect_to(port));
    return strangers;
  };
  const std::vector<Descriptor> before = crowd();
  std::atomic<int> attempts = 0;
  const RendezvousClient peer(
      [&](bool) {
        ++attempts;
        return RendezvousClient::Way{make_channel(address_, identity_of_tests())};
      },
      address_, hello_of("worker", 0), RendezvousClient::Report());
  peer.wait(running, {}, milliseconds(10000), milliseconds(60000));
  const int attempts_before = attempts;
  const std::vector<Descriptor> after = crowd();
  EXPECT_TRUE(is_closed(before.front()));
  EXPECT_TRUE(is_closed(after.front()));
  EXPECT_TRUE(is_open(after.back()));
  server.update([](GroupView& view) { view.set_phase(GroupView::FINISHED); });
  peer.wait([](const GroupView& view) { return view.phase() == GroupView::FINISHED; }, {},
            milliseconds(10000), milliseconds(60000));
  EXPECT_EQ(attempts, attempts_before) << "its connection was dropped as a stranger's";
}

TEST_F(RendezvousTest, APeerWaitsForAServerThatIsNotUpYetAndComesBackToTheNext) {
  const auto peer = attend(hello_of("worker", 0));
  for (uint64_t generation = 1; generation <= 2; ++generation) {
    RendezvousServer server(address_, identity_of_tests(), expected_peers());
    server.update([&](GroupView& view) {
      view.set_phase(GroupView::RUNNING);
      view.set_generation(generation);
    });
    const auto seen = [&](const GroupView& view) { return view.generation() == generation; };
    EXPECT_TRUE(seen(peer->wait(seen, {}, milliseconds(10000), milliseconds(60000))));
  }
}

TEST_F(RendezvousTest, AnAddressInUseIsNamed) {
  RendezvousServer server(address_, identity_of_tests(), expected_peers());
  try {
    RendezvousServer second(address_, identity_of_tests(), expected_peers());
    FAIL() << "bound twice";
  } catch (const Unavailable& error) {
    EXPECT_THAT(error.what(), HasSubstr(address_));
  }
}

}  // namespace
}  // namespace muster::group
