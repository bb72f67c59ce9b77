#include "trainer/loop/synchronizers/ps_synchronizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "common/error.h"
#include "tests/unit/common/net/listener.h"
#include "tests/unit/trainer/compute/far_engine.h"
#include "tests/unit/trainer/group/identity_of_tests.h"
#include "tests/unit/trainer/loop/support.h"
#include "trainer/group/grpc_server.h"
#include "trainer/group/rendezvous_server.h"
#include "trainer/loop/synchronizers/local_synchronizer.h"
#include "trainer/ps/shard/shard.h"

namespace muster::loop {
namespace {

// A shard of all parameters, for one member.
std::unique_ptr<ps::Shard> make_shard(const Assembly& assembly, compute::Floats parameters = {}) {
  const size_t floats = assembly.engine->layout().size();
  ps::Shard::Shape shape;
  shape.range = {0, floats};
  shape.policy = assembly.spec().policy;
  auto shard = std::make_unique<ps::Shard>(shape, *assembly.optimizer, assembly.spec().schedule);
  ps::Shard::Content content;
  content.parameters = std::move(parameters);
  content.parameters.resize(floats);
  content.slots.assign(assembly.optimizer->slot_names().size(), compute::Floats(floats));
  shard->load(std::move(content));
  ps::Shard::Answers answers;
  const Workload& workload = *assembly.workload;
  shard->begin(1, 1, ps::Tickets(0, workload.total_tickets(), {}, workload.tickets_per_epoch()),
               answers);
  return shard;
}

// The faults of a way to a ps. A stream that breaks takes pushes and answers with it; both are
// named by the step pushed. From the step `lies` on, the ps names a step that no training reaches.
struct Losses {
  std::set<uint64_t> pushes;
  std::set<uint64_t> answers;
  std::optional<uint64_t> lies;
};

// A way to the shard of this process.
class Link : public ps::ShardLink {
 public:
  Link(ps::Shard& shard, Losses& losses) : shard_(shard), losses_(losses) {}

  void send(const ps::PushHeader& header, compute::ConstPlacedFloats gradients,
            compute::PlacedFloats parameters) override {
    state_ = State::broken;
    if (!header.pull && losses_.pushes.erase(header.step) > 0) return;
    ps::Shard::Answers answers;
    if (header.pull)
      shard_.pull(1, header, answers);
    else
      shard_.push(1, header, {gradients, {}}, answers);
    if (!header.pull && losses_.answers.erase(header.step) > 0) return;
    reply_ = answers.at(0).header;
    if (losses_.lies && reply_.step >= *losses_.lies) reply_.step = uint64_t{1} << 60;
    std::copy(shard_.parameters().begin(), shard_.parameters().end(), parameters.host().begin());
    state_ = State::answered;
  }
  State state() override { return state_; }
  ps::ReplyHeader reply() const override { return reply_; }

 private:
  ps::Shard& shard_;
  Losses& losses_;
  State state_ = State::idle;
  ps::ReplyHeader reply_;
};

PsSynchronizer::Setup by_way_to(ps::Shard& shard, Losses& losses) {
  PsSynchronizer::Setup setup;
  setup.connect = [&](const ps::LinkEnd&, const std::string&) {
    return std::make_unique<Link>(shard, losses);
  };
  return setup;
}

// A rendezvous whose only member this process is, in its first generation.
class Group {
 public:
  Group() : server_(free_address(), group::identity_of_tests(), expected()) {
    server_.update([](GroupView& view) {
      view.set_phase(GroupView::RUNNING);
      view.set_generation(1);
      view.add_ps_addresses("127.0.0.1:1");
    });
    client_.emplace(server_.local_channel(), "ourselves", hello(),
                    group::RendezvousClient::Report{});
  }
  group::RendezvousClient& client() { return *client_; }

 private:
  static group::PeerRegistry::Expected expected() {
    group::PeerRegistry::Expected expected;
    expected.job_uid = "u";
    return expected;
  }
  static Hello hello() {
    Hello hello;
    hello.set_job_uid("u");
    hello.set_role("chief");
    return hello;
  }
  group::RendezvousServer server_;
  std::optional<group::RendezvousClient> client_;
};

// Of the member's engine the shard learns nothing: the memory of the second is out of its reach.
class PsSynchronizerTest : public testing::TestWithParam<bool> {};

TEST_P(PsSynchronizerTest, WhatAStreamTakesWithItIsMissingInNoEpochsSums) {
  const auto path = write_training(fresh_folder("sums"), "epochs: 2\n");
  Assembly assembly =
      assemble(Training::load(path), 1, true, {1, false}, 0,
               GetParam() ? compute::testing::make_far_engine : compute::Engine::create);
  const std::unique_ptr<ps::Shard> made = make_shard(assembly);
  ps::Shard& shard = *made;
  const uint64_t last = assembly.workload->steps_per_epoch() - 1;  // of the first epoch
  Losses losses{{1, last + 1}, {0, 3, 4, last, 2 * last}, {}};
  Group group;
  PsSynchronizer synchronizer(assembly, group.client(), by_way_to(shard, losses));
  ASSERT_TRUE(synchronizer.start({}));
  int rejoined = 0;
  while (synchronizer.has_next()) {
    const auto result = synchronizer.step();
    if (result.state == Synchronizer::State::ok) continue;
    ASSERT_EQ(result.state, Synchronizer::State::rejoin);
    ASSERT_TRUE(synchronizer.start({}));
    ++rejoined;
  }
  EXPECT_EQ(rejoined, 7);
  for (const uint64_t epoch : {0, 1}) {
    const auto sums = synchronizer.position().sums.of(epoch);
    EXPECT_EQ(sums.rows, 330) << epoch;
    EXPECT_EQ(sums.loss, shard.sums().of(epoch).loss) << epoch;
    EXPECT_EQ(sums.terms, shard.sums().of(epoch).terms) << epoch;
  }
  const double loss = synchronizer.position().sums.of(1).loss;
  static std::optional<double> first;
  EXPECT_EQ(loss, first.value_or(loss));
  first = loss;
}

TEST_P(PsSynchronizerTest, AStepThatTheTrainingDoesNotHaveIsRefused) {
  const auto path =
      write_training(fresh_folder("lies"), "epochs: 2\nsynchronization: {policy: sync}\n");
  Assembly assembly =
      assemble(Training::load(path), 1, true, {1, false}, 0,
               GetParam() ? compute::testing::make_far_engine : compute::Engine::create);
  for (const uint64_t first : {0, 3}) {
    const std::unique_ptr<ps::Shard> made = make_shard(assembly);
    ps::Shard& shard = *made;
    Losses losses{{}, {}, first};
    Group group;
    PsSynchronizer synchronizer(assembly, group.client(), by_way_to(shard, losses));
    const auto train = [&] {
      synchronizer.start({});
      while (synchronizer.has_next())
        if (synchronizer.step().state != Synchronizer::State::ok) synchronizer.start({});
    };
    EXPECT_THAT(train, testing::ThrowsMessage<Invalid>(testing::HasSubstr(
                           "the training's last one, found 1152921504606846976")));
    EXPECT_LE(synchronizer.position().step, first);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, PsSynchronizerTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Far" : "Cpu"; });

class PsDevicesTest : public testing::TestWithParam<const char*> {};

// Both add up the gradients of the same devices, and update the parameters by the same formula.
TEST_P(PsDevicesTest, TrainToTheBitsOfAProcessByItself) {
  const auto path =
      write_training(fresh_folder("devices"), "epochs: 2\ndevices: 3\n" + std::string(GetParam()));
  Assembly by_itself = assemble(Training::load(path), 1, false, {3, false});
  LocalSynchronizer local(by_itself, nullptr, 1);
  compute::Floats expected(by_itself.engine->layout().size());
  local.read_weights(expected);
  Assembly assembly = assemble(Training::load(path), 1, true, {3, false});
  const std::unique_ptr<ps::Shard> made = make_shard(assembly, expected);
  ps::Shard& shard = *made;
  while (local.has_next()) local.step();
  local.read_weights(expected);

  Losses losses;
  Group group;
  PsSynchronizer synchronizer(assembly, group.client(), by_way_to(shard, losses));
  ASSERT_TRUE(synchronizer.start({}));
  while (synchronizer.has_next()) ASSERT_EQ(synchronizer.step().state, Synchronizer::State::ok);
  EXPECT_EQ(synchronizer.position().step, local.position().step);
  for (const uint64_t epoch : {0, 1}) {
    EXPECT_EQ(synchronizer.position().sums.of(epoch).rows, 330);
    EXPECT_EQ(synchronizer.position().sums.of(epoch).loss, local.position().sums.of(epoch).loss);
  }
  EXPECT_TRUE(std::ranges::equal(shard.parameters(), expected));
}

INSTANTIATE_TEST_SUITE_P(
    Policies, PsDevicesTest,
    testing::Values("synchronization: {policy: sync}\n", "synchronization: {policy: async}\n",
                    "synchronization: {policy: sync}\ngradientAccumulation: 2\n",
                    "synchronization: {policy: async}\ngradientAccumulation: 2\n"));

}  // namespace
}  // namespace muster::loop
