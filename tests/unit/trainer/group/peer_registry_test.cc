#include "trainer/group/peer_registry.h"

#include <gmock/gmock.h>

#include <limits>

#include "tests/unit/trainer/group/peers.h"
#include "trainer/folder/generations.h"
#include "trainer/group/position.h"

namespace muster::group {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

const PeerRegistry::Time kStart{};

TEST(PeerRegistryTest, KnowsWhoIsMissing) {
  PeerRegistry registry(expected_peers());
  EXPECT_EQ(registry.missing(), "ps 0, chief 0, worker 0, worker 1");
  EXPECT_EQ(registry.admit(1, hello_of("master", 0), kStart), "");
  EXPECT_EQ(registry.admit(2, hello_of("ps", 0), kStart), "");
  EXPECT_EQ(registry.admit(3, hello_of("worker", 1), kStart), "");
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
         h = hello_of("ps", 0);
         h.set_address("nowhere");
       },
       "expected host:port as the address of a ps, found \"nowhere\""}};
  for (const Case& one : cases) {
    PeerRegistry registry(expected_peers());
    Hello bad = hello_of("worker", 0);
    one.change(bad);
    EXPECT_THAT(registry.admit(1, bad, kStart), HasSubstr(one.names));
    EXPECT_EQ(registry.members_present(), 0);
  }
}

// Of what decides the bits: a warning's text, or (determinism: strict) a reason to stay away.
TEST(PeerRegistryTest, WhoWouldComputeOtherBitsIsNamed) {
  PeerRegistry::Expected alike = expected_peers();
  alike.determinism = "avx512; 1 threads";
  alike.determinism_of_ps = "avx512";
  PeerRegistry::Expected strict = alike;
  strict.strict_determinism = true;
  for (const std::string role : {"worker", "ps"}) {
    Hello same = hello_of(role, 0);
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
    EXPECT_EQ(PeerRegistry(expected_peers()).other_bits(other), "");
  }
}

TEST(PeerRegistryTest, ASuccessorTakesThePlaceAndALatecomerDoesNot) {
  PeerRegistry registry(expected_peers());
  registry.admit(1, hello_of("worker", 0, 0), kStart);
  EXPECT_EQ(registry.admit(2, hello_of("worker", 0, 1), kStart), "");
  EXPECT_THAT(registry.take_replaced(), testing::ElementsAre(1));
  EXPECT_FALSE(registry.heard(1, {}, kStart));
  EXPECT_THAT(registry.admit(3, hello_of("worker", 0, 0), kStart), HasSubstr("attempt 1"));
  EXPECT_EQ(registry.members_present(), 1);
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
    PeerRegistry registry(expected_peers());
    EXPECT_EQ(attends(registry, test.comers), test.attends) << test.name;
  }
}

TEST(PeerRegistryTest, WhoHasLostItsPlaceMayTakeItOnceItIsFree) {
  PeerRegistry registry(expected_peers());
  EXPECT_EQ(attends(registry, {process(1, 1000), process(2, 2000)}), "2");
  registry.gone(2);
  EXPECT_EQ(registry.must_wait(process(1, 1000)), "");
  EXPECT_EQ(registry.admit(3, process(1, 1000), kStart), "");
}

TEST(PeerRegistryTest, NobodyIsOfAGenerationThatCannotBeOpen) {
  constexpr uint64_t kOpen = 7, kMost = kOpen + PeerRegistry::kMostAhead;
  PeerRegistry registry(expected_peers());
  registry.opened(kOpen);
  registry.opened(kOpen - 1);
  EXPECT_EQ(registry.admit(1, hello_of("ps", 0), kStart), "");
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
  PeerRegistry::Expected job = expected_peers();
  job.training = R"({"epochs": 2})";
  PeerRegistry registry(job);
  Hello other = hello_of("worker", 0);
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
  PeerRegistry registry(expected_peers());
  EXPECT_EQ(registry.admit(1, hello_of("worker", 0), kStart), "");
  PeerMessage message;
  MemberState& state = *message.mutable_member();
  state.set_endpoint(std::string(PeerRegistry::kMostEndpoint, 'x'));
  EXPECT_TRUE(registry.heard(1, message, kStart));
  state.set_endpoint(std::string(PeerRegistry::kMostEndpoint + 1, 'x'));
  EXPECT_FALSE(registry.heard(1, message, kStart));
  state.clear_endpoint();
  for (int i = 0; i < 20000; ++i) state.mutable_position()->add_sums()->set_epoch(1000);
  EXPECT_FALSE(registry.heard(1, message, kStart));
  EXPECT_EQ(registry.admit(2, hello_of("ps", 0), kStart), "");
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
  PeerRegistry registry(expected_peers());
  ASSERT_EQ(registry.admit(1, hello_of("worker", 0), kStart), "");
  ASSERT_EQ(registry.admit(2, hello_of("ps", 0), kStart), "");
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
  PeerRegistry registry(expected_peers());
  registry.admit(1, hello_of("worker", 0), kStart);
  EXPECT_TRUE(registry.overdue(kStart + milliseconds(3000)).empty());
  EXPECT_THAT(registry.overdue(kStart + milliseconds(3100)), testing::ElementsAre(1));
  registry.heard(1, {}, kStart + milliseconds(3000));
  EXPECT_TRUE(registry.overdue(kStart + milliseconds(3100)).empty());
}

TEST(PeerRegistryTest, KnowsWhatAPeerSaidLast) {
  PeerRegistry registry(expected_peers());
  registry.admit(1, hello_of("worker", 0), kStart);
  PeerMessage message;
  message.set_leaving(true);
  message.add_stalls()->set_doing("reading");
  message.set_computing_seconds(0.5);
  message.set_input_seconds(0.25);
  EXPECT_TRUE(registry.heard(1, message, kStart));
  EXPECT_EQ(registry.find(1)->computing_seconds, 0.5);
  EXPECT_EQ(registry.find(1)->input_seconds, 0.25);
  for (const double seconds :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    PeerMessage impossible;
    impossible.set_computing_seconds(seconds);
    EXPECT_FALSE(registry.heard(1, impossible, kStart)) << seconds;
  }
  EXPECT_TRUE(registry.find(1)->leaving);
  EXPECT_EQ(registry.find(1)->stalls.size(), 1u);
  EXPECT_TRUE(registry.heard(1, {}, kStart));
  EXPECT_FALSE(registry.find(1)->leaving);
  EXPECT_TRUE(registry.find(1)->stalls.empty());
}

// It forgets the first of more processes than it remembers, which may then come again.
TEST(PeerRegistryTest, RemembersOnlySoManyProcesses) {
  PeerRegistry registry(expected_peers());
  const auto join = [&](uint64_t incarnation) {
    Hello one = hello_of("worker", 0);
    one.set_incarnation(incarnation);
    return registry.admit(incarnation, one, kStart);
  };
  constexpr uint64_t kMost = PeerRegistry::kMostRemembered;
  for (uint64_t incarnation = 1; incarnation <= kMost; ++incarnation)
    EXPECT_EQ(join(incarnation), "");
  EXPECT_THAT(join(1), HasSubstr("found one that a younger process has replaced"));
  EXPECT_EQ(join(kMost + 1), "");
  EXPECT_EQ(join(1), "");
}

// What a ps says of its copy of shard 0.
struct CopyOfShard {
  uint64_t generation = 1;
  bool serving = false;
  bool whole = false;
  uint64_t coupling = 0;
};

PeerRegistry registry_of(const std::vector<CopyOfShard>& copies) {
  PeerRegistry::Expected of_two = expected_peers();
  of_two.shards = 2;
  PeerRegistry registry(of_two);
  for (uint32_t ps = 0; ps < copies.size(); ++ps) {
    EXPECT_EQ(registry.admit(ps + 1, hello_of("ps", ps), kStart), "");
    PeerMessage message;
    ShardState& state = *message.add_shards();
    state.set_generation(copies[ps].generation);
    state.set_serving(copies[ps].serving);
    state.set_whole(copies[ps].whole);
    state.set_coupling(copies[ps].coupling);
    EXPECT_TRUE(registry.heard(ps + 1, message, kStart));
  }
  return registry;
}

TEST(PeerRegistryTest, OfTwoCopiesThatClaimToServeTheNewerOneDoes) {
  for (const uint64_t first : {1, 3}) {
    const PeerRegistry registry = registry_of({{first, true}, {2, true}});
    EXPECT_EQ(registry.serving(0)->generation(), std::max<uint64_t>(first, 2));
  }
  EXPECT_EQ(registry_of({{1, false}, {2, false}}).serving(0), nullptr);
}

TEST(PeerRegistryTest, OnlyAWholeCopyOfTheSameCouplingCanReplaceTheServingOne) {
  const CopyOfShard serving{1, true, false, 5};
  EXPECT_EQ(registry_of({serving, {1, false, true, 5}}).replicated(), 1);
  EXPECT_EQ(registry_of({serving, {1, false, false, 5}}).replicated(), 0);
  EXPECT_EQ(registry_of({serving, {1, false, true, 4}}).replicated(), 0);
  EXPECT_EQ(registry_of({{1, true, false, 0}, {1, false, true, 0}}).replicated(), 0);
  EXPECT_EQ(registry_of({serving}).replicated(), 0);
}

}  // namespace
}  // namespace muster::group
