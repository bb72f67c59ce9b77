// Whatever synchronizes, an engine whose memory the host cannot address trains to the bits of one
// whose memory it can.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/muster/parameter_server.pb.h"
#include "tests/unit/common/net/listener.h"
#include "tests/unit/trainer/compute/cuda/simulated_gpu.h"
#include "tests/unit/trainer/compute/far_engine.h"
#include "tests/unit/trainer/group/identity_of_tests.h"
#include "tests/unit/trainer/loop/support.h"
#include "trainer/compute/cuda/engine.h"
#include "trainer/group/grpc_server.h"
#include "trainer/group/rendezvous_server.h"
#include "trainer/loop/evaluation/evaluation.h"
#include "trainer/loop/synchronizers/collective_synchronizer.h"
#include "trainer/loop/synchronizers/local_synchronizer.h"

namespace muster::loop {
namespace {

using Bits = std::vector<std::vector<float>>;  // of parameters and slots

// A training on one of the backends, whose every step and end is written down.
class Told {
 public:
  Told(const std::string& more, bool far, int replicas = 1)
      : Told(more, far ? "far" : "near",
             far ? compute::testing::make_far_engine : compute::Engine::create, replicas) {}
  Told(const std::string& more, const std::string& folder, const MakeEngine& make, int replicas = 1)
      : training_(Training::load(write_training(fresh_folder(folder), more))),
        evaluation_(training_, {"validation"}),
        assembly_(assemble(training_, replicas, false, {1, false}, 0, make)) {}

  Assembly& assembly() { return assembly_; }
  // So many steps, or all; then what the engine evaluates to, and what a snapshot holds.
  void train(Synchronizer& synchronizer, int steps = 1'000'000) {
    while ((steps-- > 0 || !synchronizer.is_at_position()) && synchronizer.has_next()) {
      const auto result = synchronizer.step();
      ASSERT_EQ(result.state, Synchronizer::State::ok);
      losses.push_back(result.sums.loss);
    }
    const auto& data = *evaluation_.parts().at(0).dataset;
    const auto evaluation = evaluate(*assembly_.engine, data, assembly_.spec());
    losses.push_back(compute::value_of(evaluation->metrics, "loss").value());
    const auto snapshot = synchronizer.snapshot();
    EXPECT_EQ(snapshot->position().step, synchronizer.position().step);
    state.clear();
    for (const compute::Floats& copy : assembly_.copies)
      state.emplace_back(copy.begin(), copy.end());
    read_weights(synchronizer);
  }
  // The weights to evaluate: the last slot where that is an average, else the parameters.
  void read_weights(Synchronizer& synchronizer) {
    const compute::ParameterLayout& layout = assembly_.engine->layout();
    compute::Floats weights(layout.size());
    synchronizer.read_weights(weights);
    const std::vector<float>& trained =
        assembly_.optimizer->average_slot() ? state.back() : state.front();
    const size_t end = layout.segment(compute::Segment::trainable).end;
    ASSERT_LT(end, layout.size());
    for (size_t i = 0; i < layout.size(); ++i)
      ASSERT_EQ(weights[i], i < end ? trained[i] : state.front()[i]) << i;
  }
  // What a synchronizer leaves in the engine when it goes.
  void look_at_engine() {
    compute::HostView view(assembly_.engine->parameters());
    state.emplace_back(view.values().begin(), view.values().end());
  }

  std::vector<double> losses;
  Bits state;

 private:
  Training training_;
  EvaluationData evaluation_;
  Assembly assembly_;
};

void expect_same(const Told& far, const Told& near) {
  EXPECT_GT(near.losses.size(), 10u);
  EXPECT_LT(near.losses.back(), near.losses.front() * 4);
  EXPECT_EQ(far.losses, near.losses);
  EXPECT_GE(near.state.size(), 4u);  // parameters, slots, and the engine's parameters
  EXPECT_EQ(far.state, near.state);
}

class AloneOnBackends : public testing::TestWithParam<const char*> {};

TEST_P(AloneOnBackends, ComesToTheSameBits) {
  const auto run = [&](bool far) {
    Told told(std::string("epochs: 2\noptimizer: ") + GetParam() + "\n", far);
    {
      LocalSynchronizer synchronizer(told.assembly(), nullptr, 1);
      told.train(synchronizer);
    }
    told.look_at_engine();
    return told;
  };
  expect_same(run(true), run(false));
}

INSTANTIATE_TEST_SUITE_P(Everything, AloneOnBackends,
                         testing::Values("{name: adam}\nseed: 2", "{name: adam}\ndevices: 2",
                                         "{name: adam}\ngradientAccumulation: 2",
                                         "{name: adam}\nsynchronization: {wire: bfloat16}",
                                         "{name: lamb}", "{name: lamb}\ndevices: 2",
                                         "{name: momentum, l2: {factor: 0.01}, ema: {decay: 0.9}}",
                                         "{name: rmsprop, clipNorm: 0.5, ema: {decay: 0.9}}",
                                         "{name: rmsprop, clipNorm: 0.5, ema: {decay: 0.9}}\n"
                                         "devices: 2"),
                         [](const auto& info) { return "Case" + std::to_string(info.index); });

// Makes engines of a kind on simulated GPUs.
template <class Made>
MakeEngine on_simulated_gpus(
    compute::testing::ThreadOrder order = compute::testing::ThreadOrder::ascending,
    compute::testing::Links links = compute::testing::Links::possible) {
  return [=](const compute::ModelSpec& model, const compute::EngineOptions& options) {
    return std::make_unique<Made>(compute::build_graph(model), options,
                                  compute::testing::make_simulated_gpu(order, links));
  };
}

// GPUs that are linked hold the state themselves. Of others the host holds it.
class OnLinkedGpus : public testing::TestWithParam<std::tuple<int, const char*>> {};

TEST_P(OnLinkedGpus, ComesToTheSameBits) {
  using compute::testing::Links;
  const auto& [devices, optimizer] = GetParam();
  const std::string training = std::string("epochs: 2\noptimizer: ") + optimizer +
                               "\ndevices: " + std::to_string(devices) + "\n";
  const std::filesystem::path folder = fresh_folder("linked-checkpoint") / "checkpoints/ckpt-1-5";
  std::filesystem::create_directories(folder);
  checkpoint::Store::Found found{folder, {}};
  const auto run = [&, text = training](bool linked, const checkpoint::Store::Found* from,
                                        int steps = 1'000'000) {
    Told told(
        text, linked ? "linked" : "unlinked",
        on_simulated_gpus<compute::cuda::CudaEngine>(compute::testing::ThreadOrder::ascending,
                                                     linked ? Links::possible : Links::impossible));
    LocalSynchronizer synchronizer(told.assembly(), from, 1);
    told.train(synchronizer, steps);
    if (steps == 5) synchronizer.snapshot()->write(folder, found.manifest, 0);
    return told;
  };
  const Told linked = run(true, nullptr), unlinked = run(false, nullptr);
  EXPECT_GT(linked.losses.size(), 8u);
  EXPECT_EQ(linked.losses, unlinked.losses);
  EXPECT_EQ(linked.state, unlinked.state);
  run(true, nullptr, 5);
  const Told again = run(true, &found);
  EXPECT_EQ(again.state, run(false, &found).state);
  EXPECT_EQ(again.state.front(), linked.state.front());
  EXPECT_EQ(again.losses.back(), linked.losses.back());
}

INSTANTIATE_TEST_SUITE_P(
    Everything, OnLinkedGpus,
    testing::Combine(testing::Values(2, 3),
                     testing::Values("{name: adam}", "{name: lamb}",
                                     "{name: rmsprop, clipNorm: 0.5, ema: {decay: 0.9}}")),
    [](const auto& info) { return "Case" + std::to_string(info.index); });

// An engine that learns nothing of what comes next.
class WithoutForesight : public compute::cuda::CudaEngine {
 public:
  using CudaEngine::CudaEngine;
  std::shared_ptr<void> serve(std::span<const std::byte>, compute::Content) override {
    return nullptr;
  }
  void set_meanwhile(const std::function<void()>&) override {}
};

// An engine that ends each step before it begins the next one.
class StepByStep : public compute::cuda::CudaEngine {
 public:
  using CudaEngine::CudaEngine;
  bool trains_ahead(const compute::Optimizer&) const override { return false; }
};

// The state is that of the position wherever the training loop may need it: where a checkpoint is
// due, and at an epoch's end.
TEST(Backends, AGpuThatTrainsAheadComesToTheSameBits) {
  struct Result {
    std::vector<double> losses;
    std::vector<uint64_t> at_position;  // steps
    Bits states;                        // the parameters there
  };
  const auto run = [](auto type, uint64_t every, int64_t rows, const std::string& more) {
    const MakeEngine make = on_simulated_gpus<typename decltype(type)::type>();
    Training training = Training::load(write_training(fresh_folder("ahead"), "epochs: 2\n" + more));
    training.spec.checkpoint.every_steps = every;
    training.spec.batch_size = rows;
    Assembly assembly = assemble(std::move(training), 1, false, {1, false}, 0, make);
    LocalSynchronizer synchronizer(assembly, nullptr, 1);
    Result result;
    while (synchronizer.has_next()) {
      result.losses.push_back(synchronizer.step().sums.loss);
      const auto& position = synchronizer.position();
      if (!synchronizer.is_at_position()) continue;
      result.at_position.push_back(position.step);
      if (position.step % every != 0 && position.next_batch != 0) continue;
      EXPECT_EQ(synchronizer.snapshot()->position().step, position.step);
      result.states.emplace_back(assembly.copies[0].begin(), assembly.copies[0].end());
    }
    return result;
  };
  for (const std::string more : {"", "learningRateSchedule: {cosine: {decaySteps: 20}}\n"}) {
    const Result ahead = run(std::type_identity<compute::cuda::CudaEngine>{}, 4, 32, more);
    const Result one_by_one = run(std::type_identity<StepByStep>{}, 4, 32, more);
    EXPECT_EQ(ahead.losses, one_by_one.losses);
    EXPECT_EQ(ahead.states, one_by_one.states);
    EXPECT_GT(ahead.states.size(), 3u);
    EXPECT_EQ(one_by_one.at_position.size(), one_by_one.losses.size());
    EXPECT_EQ(ahead.at_position.size(), ahead.states.size());
  }
  // A run has 16 steps at most, of the 42 of an epoch.
  const Result runs = run(std::type_identity<compute::cuda::CudaEngine>{}, 1000, 8, "");
  EXPECT_EQ(runs.at_position, (std::vector<uint64_t>{16, 32, 42, 58, 74, 84}));
}

// A job that is asked to stop begins no more steps; one that fails leaves a step that is begun.
TEST(Backends, AGpuThatTrainsAheadEndsWhatItHasBegun) {
  const MakeEngine make = on_simulated_gpus<compute::cuda::CudaEngine>();
  Assembly assembly = assemble(Training::load(write_training(fresh_folder("ends"), "epochs: 2\n")),
                               1, false, {1, false}, 0, make);
  {
    LocalSynchronizer synchronizer(assembly, nullptr, 1);
    std::stop_source stop;
    ASSERT_TRUE(synchronizer.start(stop.get_token()));
    synchronizer.step();
    EXPECT_FALSE(synchronizer.is_at_position());
    stop.request_stop();
    synchronizer.step();
    EXPECT_TRUE(synchronizer.is_at_position());
    EXPECT_EQ(synchronizer.position().step, 2u);
  }
  {
    LocalSynchronizer synchronizer(assembly, nullptr, 2);
    synchronizer.step();
    EXPECT_FALSE(synchronizer.is_at_position());
  }
  LocalSynchronizer synchronizer(assembly, nullptr, 3);
  EXPECT_TRUE(std::isfinite(synchronizer.step().sums.loss));
}

// Whether batches come one by one, or are copied while a GPU computes, or stay there.
TEST(Backends, ComeToTheSameBitsHoweverAGpuGetsItsBatches) {
  using compute::testing::ThreadOrder;
  struct Result {
    std::vector<double> losses;
    Bits state;
    bool operator==(const Result&) const = default;
  };
  const auto run = [](auto type, bool in_memory, ThreadOrder order, const std::string& more) {
    Training training = Training::load(write_training(fresh_folder("batches"), more));
    training.spec.data.train.cache = in_memory;
    const MakeEngine make = on_simulated_gpus<typename decltype(type)::type>(order);
    Assembly assembly = assemble(std::move(training), 1, false, {1, false}, 0, make);
    LocalSynchronizer synchronizer(assembly, nullptr, 1);
    Result result;
    while (synchronizer.has_next()) result.losses.push_back(synchronizer.step().sums.loss);
    synchronizer.snapshot();
    for (const compute::Floats& copy : assembly.copies)
      result.state.emplace_back(copy.begin(), copy.end());
    return result;
  };
  for (const std::string more : {"", "gradientAccumulation: 3\n", "devices: 2\n"}) {
    const std::string training = "epochs: 3\n" + more;
    const Result expected =
        run(std::type_identity<WithoutForesight>{}, true, ThreadOrder::ascending, training);
    EXPECT_GT(expected.losses.size(), 10u);
    for (const bool in_memory : {true, false})
      for (const ThreadOrder order : {ThreadOrder::ascending, ThreadOrder::descending})
        EXPECT_EQ(run(std::type_identity<compute::cuda::CudaEngine>{}, in_memory, order, training),
                  expected)
            << more << in_memory;
  }
}

TEST(Backends, GoOnFromACheckpointOfEither) {
  const std::string training = "epochs: 2\noptimizer: {name: adam}\n";
  const std::filesystem::path folder = fresh_folder("checkpoint") / "checkpoints" / "ckpt-1-5";
  std::filesystem::create_directories(folder);
  Told saved(training, true), whole(training, false);
  checkpoint::Store::Found found{folder, {}};
  {
    LocalSynchronizer synchronizer(saved.assembly(), nullptr, 1);
    saved.train(synchronizer, 5);
    synchronizer.snapshot()->write(folder, found.manifest, 0);
  }
  {
    LocalSynchronizer synchronizer(whole.assembly(), nullptr, 1);
    whole.train(synchronizer);
  }
  for (const bool far : {true, false}) {
    Told resumed(training, far);
    LocalSynchronizer synchronizer(resumed.assembly(), &found, 2);
    resumed.train(synchronizer);
    EXPECT_EQ(resumed.state, whole.state) << far;
    EXPECT_EQ(resumed.losses.back(), whole.losses.back()) << far;
  }
}

// A group of one member, which computes two logical replicas.
class Group {
 public:
  explicit Group(bool shared_memory) {
    server_.update([&](GroupView& view) {
      view.set_phase(GroupView::RUNNING);
      view.set_generation(1);
      CollectivePlan& plan = *view.mutable_collective();
      plan.set_generation(1);
      plan.set_content(CollectivePlan::INITIALIZE);
      plan.set_replicas(2);
      plan.set_shared_memory(shared_memory);
      plan.add_members()->set_incarnation(kOurs);
    });
    Hello hello;
    hello.set_job_uid("u");
    hello.set_role("chief");
    hello.set_incarnation(kOurs);
    client_.emplace(server_.local_channel(), "ourselves", hello,
                    [this](PeerMessage& message) { report_.fill(message); });
  }

  std::unique_ptr<CollectiveSynchronizer> join(Assembly& assembly) {
    CollectiveSynchronizer::Setup setup;
    setup.incarnation = kOurs;
    setup.host = "127.0.0.1";
    return std::make_unique<CollectiveSynchronizer>(assembly, *client_, report_, setup);
  }

 private:
  static constexpr uint64_t kOurs = 11;
  static group::PeerRegistry::Expected expected() {
    group::PeerRegistry::Expected expected;
    expected.job_uid = "u";
    expected.shards = 0;
    return expected;
  }

  group::RendezvousServer server_{free_address(), group::identity_of_tests(), expected()};
  MemberReport report_;
  std::optional<group::RendezvousClient> client_;
};

class CollectiveOnBackends : public testing::TestWithParam<std::tuple<const char*, bool>> {};

TEST_P(CollectiveOnBackends, ComesToTheSameBits) {
  const auto run = [&](bool far) {
    const auto& [optimizer, shared_memory] = GetParam();
    Told told(std::string("epochs: 2\noptimizer: {name: ") + optimizer + "}\n", far, 2);
    {
      Group group(shared_memory);
      const auto synchronizer = group.join(told.assembly());
      if (synchronizer->start({})) told.train(*synchronizer);
    }
    told.look_at_engine();
    return told;
  };
  expect_same(run(true), run(false));
}

INSTANTIATE_TEST_SUITE_P(
    Everything, CollectiveOnBackends,
    testing::Combine(testing::Values("adam", "lamb", "rmsprop, clipNorm: 0.5, ema: {decay: 0.9}"),
                     testing::Bool()),
    [](const auto& info) {
      const std::string optimizer = std::get<0>(info.param);
      return optimizer.substr(0, optimizer.find(',')) +
             (std::get<1>(info.param) ? "_Memory" : "_Tcp");
    });

}  // namespace
}  // namespace muster::loop
