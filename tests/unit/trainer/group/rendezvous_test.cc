#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "common/error.h"
#include "common/exit_code.h"
#include "proto/muster/rendezvous.grpc.pb.h"
#include "tests/unit/common/net/listener.h"
#include "tests/unit/trainer/group/identity_of_tests.h"
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

PeerRegistry::Expected expected() {
  PeerRegistry::Expected expected;
  expected.job_uid = "u";
  expected.version = "1";
  expected.training_fingerprint = "t";
  expected.training = R"({"seed": 1, "optimizer": {"name": "adam"}})";
  expected.layout_fingerprint = "l";
  expected.chiefs = 1;
  expected.workers = 2;
  expected.shards = 1;
  return expected;
}

Hello hello(const std::string& role, uint32_t index, uint32_t attempt = 0) {
  Hello hello;
  hello.set_job_uid("u");
  hello.set_version("1");
  hello.set_training_fingerprint("t");
  hello.set_layout_fingerprint(role == "ps" ? "" : "l");
  hello.set_role(role);
  if (role == "ps") hello.set_address("10.0.0.1:2222");
  hello.set_index(index);
  hello.set_attempt(attempt);
  return hello;
}

const PeerRegistry::Time kStart{};

TEST(PeerRegistryTest, KnowsWhoIsMissing) {
  PeerRegistry registry(expected());
  EXPECT_EQ(registry.missing(), "ps 0, chief 0, worker 0, worker 1");
  EXPECT_EQ(registry.admit(1, hello("master", 0), kStart), "");
  EXPECT_EQ(registry.admit(2, hello("ps", 0), kStart), "");
  EXPECT_EQ(registry.admit(3, hello("worker", 1), kStart), "");
  EXPECT_EQ(registry.missing(), "worker 0");
  EXPECT_EQ(registry.missing_replicas(), std::vector<std::string>{"worker-0"});
  EXPECT_EQ(registry.members_present(), 2);
}

TEST(PeerRegistryTest, NamesWhyAPeerMayNotJoin) {
  struct Case {
    std::function<void(Hello&)> change;
    std::string names;
  };
  const std::vector<Case> cases = {
      {[](Hello& h) { h.set_job_uid("x"); }, "expected this job's uid, found \"x\""},
      {[](Hello& h) { h.set_version("2"); }, "version"},
      {[](Hello& h) { h.set_training_fingerprint("x"); }, "training fingerprint"},
      {[](Hello& h) {
         h.set_training_fingerprint("x");
         h.set_training(R"({"seed": 2, "optimizer": {"name": "adam"}})");
       },
       "training.seed: expected 1 (an integer), found 2 (an integer)"},
      {[](Hello& h) {
         h.set_training_fingerprint("x");
         h.set_training("no JSON");
       },
       "training fingerprint"},
      {[](Hello& h) { h.set_layout_fingerprint("x"); }, "layout fingerprint"},
      {[](Hello& h) { h.set_index(2); }, "index 2"},
      {[](Hello& h) { h.set_index(~0u); }, "index"},
      {[](Hello& h) { h.set_role("boss"); }, "boss"},
      {[](Hello& h) { h.set_attempt(1u << 31); }, "found attempt 2147483648"},
      {[](Hello& h) { h.set_host(std::string(PeerRegistry::kMostHello, 'x')); },
       "expected at most 4096 bytes of a hello beside its training, found 4"},
      {[](Hello& h) { h.set_determinism(std::string(PeerRegistry::kMostHello, 'x')); },
       "expected at most 4096 bytes of a hello"},
      {[](Hello& h) {
         h.set_training_fingerprint("x");
         h.set_training(std::string(100000, '['));
       },
       "training fingerprint"},
      {[](Hello& h) {
         h = hello("ps", 0);
         h.set_address("nowhere");
       },
       "expected host:port as the address of a ps, found \"nowhere\""}};
  for (const Case& one : cases) {
    PeerRegistry registry(expected());
    Hello bad = hello("worker", 0);
    one.change(bad);
    EXPECT_THAT(registry.admit(1, bad, kStart), HasSubstr(one.names));
    EXPECT_EQ(registry.members_present(), 0);
  }
}

// Of what decides the bits: a warning's text, or (determinism: strict) a reason to stay away.
TEST(PeerRegistryTest, WhoWouldComputeOtherBitsIsNamed) {
  PeerRegistry::Expected alike = expected();
  alike.determinism = "avx512; 1 threads";
  alike.determinism_of_ps = "avx512";
  PeerRegistry::Expected strict = alike;
  strict.strict_determinism = true;
  for (const std::string role : {"worker", "ps"}) {
    Hello same = hello(role, 0);
    same.set_determinism(role == "ps" ? "avx512" : "avx512; 1 threads");
    Hello other = same;
    other.set_determinism("avx512; 2 threads");
    EXPECT_EQ(PeerRegistry(strict).admit(1, same, kStart), "");
    EXPECT_EQ(PeerRegistry(alike).other_bits(same), "");
    const std::string text = "expected what decides its results' bits to be \"" +
                             same.determinism() + "\", found \"avx512; 2 threads\"";
    EXPECT_EQ(PeerRegistry(strict).admit(1, other, kStart), "determinism: strict: " + text);
    EXPECT_EQ(PeerRegistry(alike).admit(1, other, kStart), "");
    EXPECT_EQ(PeerRegistry(alike).other_bits(other), text);
    EXPECT_EQ(PeerRegistry(expected()).other_bits(other), "");
  }
}

TEST(PeerRegistryTest, ASuccessorTakesThePlaceAndALatecomerDoesNot) {
  PeerRegistry registry(expected());
  registry.admit(1, hello("worker", 0, 0), kStart);
  EXPECT_EQ(registry.admit(2, hello("worker", 0, 1), kStart), "");
  EXPECT_THAT(registry.take_replaced(), testing::ElementsAre(1));
  EXPECT_FALSE(registry.heard(1, {}, kStart));
  EXPECT_THAT(registry.admit(3, hello("worker", 0, 0), kStart), HasSubstr("attempt 1"));
  EXPECT_EQ(registry.members_present(), 1);
}

Hello process(uint64_t incarnation, uint64_t started = 0, uint32_t attempt = 0) {
  Hello result = hello("worker", 0, attempt);
  result.set_incarnation(incarnation);
  result.set_started(started);
  return result;
}

// Lets `comers` come one after the other, by connections 1, 2, ... Returns the connections that
// attend in the end, then those that were rejected ("!") and those that have to wait ("?").
std::string attends(PeerRegistry& registry, const std::vector<Hello>& comers) {
  std::string refused;
  for (size_t i = 0; i < comers.size(); ++i) {
    const bool waits = !registry.must_wait(comers[i]).empty();
    const bool rejected = !waits && !registry.admit(i + 1, comers[i], kStart).empty();
    if (waits || rejected) refused += " " + std::to_string(i + 1) + (waits ? "?" : "!");
  }
  std::string there;
  for (size_t i = 0; i < comers.size(); ++i) {
    if (registry.find(i + 1)) there += std::to_string(i + 1);
  }
  return there + refused;
}

TEST(PeerRegistryTest, TwoLiveProcessesOfOneAttemptDoNotThrowEachOtherOut) {
  struct {
    const char* name;
    std::vector<Hello> comers;
    const char* attends;
  } const cases[] = {
      {"the elder comes back after the younger", {process(1), process(2), process(1)}, "2 3!"},
      {"and again", {process(1), process(2), process(1), process(1)}, "2 3! 4!"},
      {"the younger comes by a new connection", {process(1), process(2), process(2)}, "3"},
      {"the same process comes back", {process(1), process(1), process(1)}, "3"},
      {"a third one", {process(1), process(2), process(3), process(2), process(1)}, "3 4! 5!"},
      {"the clocks agree", {process(1, 1000), process(2, 2000)}, "2"},
      {"the clocks are the same", {process(1, 1000), process(2, 1000)}, "2"},
      {"the elder is heard of second", {process(2, 2000), process(1, 1000)}, "1 2?"},
      {"and asks again", {process(2, 2000), process(1, 1000), process(1, 1000)}, "1 2? 3?"},
      {"only one says when it began", {process(2, 2000), process(1)}, "2"},
      {"a later attempt, whatever its clock says", {process(1, 2000), process(2, 1000, 1)}, "2"},
  };
  for (const auto& test : cases) {
    PeerRegistry registry(expected());
    EXPECT_EQ(attends(registry, test.comers), test.attends) << test.name;
  }
}

TEST(PeerRegistryTest, WhoHasLostItsPlaceMayTakeItOnceItIsFree) {
  PeerRegistry registry(expected());
  EXPECT_EQ(attends(registry, {process(1, 1000), process(2, 2000)}), "2");
  registry.gone(2);
  EXPECT_EQ(registry.must_wait(process(1, 1000)), "");
  EXPECT_EQ(registry.admit(3, process(1, 1000), kStart), "");
}

TEST(PeerRegistryTest, NobodyIsOfAGenerationThatCannotBeOpen) {
  constexpr uint64_t kOpen = 7, kMost = kOpen + PeerRegistry::kMostAhead;
  PeerRegistry registry(expected());
  registry.opened(kOpen);
  registry.opened(kOpen - 1);
  EXPECT_EQ(registry.admit(1, hello("ps", 0), kStart), "");
  PeerMessage message;
  message.add_shards()->set_generation(kMost);
  EXPECT_TRUE(registry.heard(1, message, kStart));
  for (const uint64_t none : {kMost + 1, folder::kLastGeneration - 1, ~uint64_t{0}}) {
    message.mutable_shards(0)->set_generation(none);
    EXPECT_FALSE(registry.heard(1, message, kStart));
    PeerMessage member;
    member.mutable_member()->set_generation(none);
    EXPECT_FALSE(registry.heard(1, member, kStart));
    member.mutable_member()->set_generation(0);
    member.mutable_member()->set_prepared(none);
    EXPECT_FALSE(registry.heard(1, member, kStart));
  }
  EXPECT_EQ(registry.held(0, 0)->generation(), kMost);
}

TEST(PeerRegistryTest, ATrainingThatIsMuchLongerIsNotRead) {
  PeerRegistry::Expected job = expected();
  job.training = R"({"epochs": 2})";
  PeerRegistry registry(job);
  Hello other = hello("worker", 0);
  other.set_training_fingerprint("other");
  other.set_training(R"({"epochs": 3})");
  EXPECT_THAT(registry.admit(1, other, kStart), HasSubstr("training.epochs: expected 2 "));
  std::string fields = R"({"epochs": 3)";
  for (int i = 0; fields.size() < 3'000'000; ++i) fields += ",\"" + std::to_string(i) + "\":0";
  other.set_training(fields + "}");
  EXPECT_THAT(registry.admit(2, other, kStart), HasSubstr("expected training fingerprint"));
}

// What would be told to all others has its bounds.
TEST(PeerRegistryTest, NobodySaysMoreThanAViewCanHold) {
  PeerRegistry registry(expected());
  EXPECT_EQ(registry.admit(1, hello("worker", 0), kStart), "");
  PeerMessage message;
  MemberState& state = *message.mutable_member();
  state.set_endpoint(std::string(PeerRegistry::kMostEndpoint, 'x'));
  EXPECT_TRUE(registry.heard(1, message, kStart));
  state.set_endpoint(std::string(PeerRegistry::kMostEndpoint + 1, 'x'));
  EXPECT_FALSE(registry.heard(1, message, kStart));
  state.clear_endpoint();
  for (int i = 0; i < 20000; ++i) state.mutable_position()->add_sums()->set_epoch(1000);
  EXPECT_FALSE(registry.heard(1, message, kStart));
  EXPECT_EQ(registry.admit(2, hello("ps", 0), kStart), "");
  PeerMessage shards;
  *shards.add_shards()->mutable_base() = state.position();
  EXPECT_FALSE(registry.heard(2, shards, kStart));
  PeerMessage stalls;
  for (int i = 0; i < PeerRegistry::kMostStalls; ++i)
    stalls.add_stalls()->set_doing(std::string(PeerRegistry::kMostOfStall, 'x'));
  EXPECT_TRUE(registry.heard(1, stalls, kStart));
  stalls.mutable_stalls(0)->mutable_doing()->push_back('x');
  EXPECT_FALSE(registry.heard(1, stalls, kStart));
  stalls.mutable_stalls(0)->clear_doing();
  stalls.add_stalls();
  EXPECT_FALSE(registry.heard(1, stalls, kStart));
}

// With each of these rank 0 would have to count on from what cannot be, or to believe a stranger's
// part of another's state.
TEST(PeerRegistryTest, NobodySaysWhatCannotBe) {
  struct Case {
    std::string what;
    uint64_t connection;  // 1: a worker's, 2: a ps's
    std::function<void(PeerMessage&)> say;
  };
  const auto position_of = [](PeerMessage& message) -> PositionMessage& {
    return *message.mutable_member()->mutable_position();
  };
  constexpr uint64_t kTooMany = kMostCounted + 1;
  const std::vector<Case> cases = {
      {"step", 1, [&](auto& m) { position_of(m).set_step(kTooMany); }},
      {"epoch", 1, [&](auto& m) { position_of(m).set_epoch(kTooMany); }},
      {"batch", 1, [&](auto& m) { position_of(m).set_next_batch(kTooMany); }},
      {"t", 1, [&](auto& m) { position_of(m).set_optimizer_t(kTooMany); }},
      {"rows", 1, [&](auto& m) { position_of(m).add_sums()->set_rows(-1); }},
      {"a member's shard", 1, [](auto& m) { m.add_shards(); }},
      {"two of one shard", 2,
       [](auto& m) {
         m.add_shards();
         m.add_shards();
       }},
      {"no such shard", 2, [](auto& m) { m.add_shards()->set_shard(1); }},
      {"shard -1", 2, [](auto& m) { m.add_shards()->set_shard(~0u); }},
      {"the shard's step", 2, [](auto& m) { m.add_shards()->set_step(kTooMany); }},
      {"its base", 2, [](auto& m) { m.add_shards()->mutable_base()->set_step(kTooMany); }},
      {"its weight", 2, [](auto& m) { m.add_shards()->add_sums()->set_weight(-1); }},
      {"its rows before", 2, [](auto& m) { m.add_shards()->add_sums_before()->set_rows(-1); }}};
  PeerRegistry registry(expected());
  ASSERT_EQ(registry.admit(1, hello("worker", 0), kStart), "");
  ASSERT_EQ(registry.admit(2, hello("ps", 0), kStart), "");
  for (const Case& one : cases) {
    PeerMessage message;
    one.say(message);
    EXPECT_FALSE(registry.heard(one.connection, message, kStart)) << one.what;
  }
  PeerMessage possible;
  possible.mutable_member()->mutable_position()->set_step(kMostCounted);
  EXPECT_TRUE(registry.heard(1, possible, kStart));
  EXPECT_EQ(registry.held(0, 0), nullptr);
}

TEST(PeerRegistryTest, SilenceForThreeHeartbeatsIsLoss) {
  PeerRegistry registry(expected());
  registry.admit(1, hello("worker", 0), kStart);
  EXPECT_TRUE(registry.overdue(kStart + milliseconds(2900)).empty());
  EXPECT_THAT(registry.overdue(kStart + milliseconds(3100)), testing::ElementsAre(1));
  registry.heard(1, {}, kStart + milliseconds(3000));
  EXPECT_TRUE(registry.overdue(kStart + milliseconds(3100)).empty());
}

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
  RendezvousServer server(address_, identity_of_tests(), expected());
  const auto worker = attend(hello("worker", 0));
  const auto shard = attend(hello("ps", 0));
  server.update([](GroupView& view) {
    view.set_phase(GroupView::RUNNING);
    view.set_generation(4);
  });
  for (const auto* peer : {worker.get(), shard.get()})
    EXPECT_EQ(peer->wait(running, {}, milliseconds(10000), milliseconds(60000)).generation(), 4u);
}

TEST_F(RendezvousTest, AStrangerIsToldWhy) {
  RendezvousServer server(address_, identity_of_tests(), expected());
  Hello stranger = hello("worker", 0);
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
  RendezvousServer server(address_, identity_of_tests(), expected());
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
  RendezvousServer server(address_, identity_of_tests(), expected());
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
  auto server = std::make_unique<RendezvousServer>(address_, identity_of_tests(), expected());
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
  auto server = std::make_unique<RendezvousServer>(address_, identity_of_tests(), expected());
  const auto finished = [](const GroupView& view) { return view.phase() == GroupView::FINISHED; };
  const auto peer = attend(hello("ps", 0));
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
  const RendezvousServer server(address_, identity_of_tests(), expected(), milliseconds(100));
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
  const RendezvousServer server(address_, identity_of(ours), expected());
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
    *message.mutable_hello() = hello("worker", 0);
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
  *message.mutable_hello() = hello("worker", 0);
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
  RendezvousServer server_{address_, Identity(), expected(), milliseconds(100)};
  std::unique_ptr<Rendezvous::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<PeerMessage, GroupMessage>> stream_;
};

// A long rejection would stay unwritten as long as nobody reads it.
TEST_F(SilentReaderTest, IsToldLittleWhenItMayNotJoin) {
  await_members(0);
  PeerMessage stranger;
  *stranger.mutable_hello() = hello("worker", 0);
  stranger.mutable_hello()->set_job_uid(much_);
  say(stranger);
  EXPECT_THAT(read().rejected(), testing::AllOf(HasSubstr("expected this job's uid"),
                                                testing::SizeIs(testing::Le(kMostTold))));
  expect_ended();
}

TEST_F(SilentReaderTest, IsSentAwayWhenItSaysWhatCannotBe) {
  PeerMessage worker;
  *worker.mutable_hello() = hello("worker", 0);
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
  RendezvousServer server(address_, identity_of_tests(), expected());
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
      address_, hello("worker", 0), RendezvousClient::Report());
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
  const auto peer = attend(hello("worker", 0));
  for (uint64_t generation = 1; generation <= 2; ++generation) {
    RendezvousServer server(address_, identity_of_tests(), expected());
    server.update([&](GroupView& view) {
      view.set_phase(GroupView::RUNNING);
      view.set_generation(generation);
    });
    const auto seen = [&](const GroupView& view) { return view.generation() == generation; };
    EXPECT_TRUE(seen(peer->wait(seen, {}, milliseconds(10000), milliseconds(60000))));
  }
}

TEST_F(RendezvousTest, AnAddressInUseIsNamed) {
  RendezvousServer server(address_, identity_of_tests(), expected());
  try {
    RendezvousServer second(address_, identity_of_tests(), expected());
    FAIL() << "bound twice";
  } catch (const Unavailable& error) {
    EXPECT_THAT(error.what(), HasSubstr(address_));
  }
}

}  // namespace
}  // namespace muster::group
