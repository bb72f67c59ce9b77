// Members of a collective whose GPUs are linked, from the rendezvous to the state that they come
// to.

#include <gtest/gtest.h>

#include "tests/unit/common/net/listener.h"
#include "tests/unit/trainer/compute/cuda/simulated_gpu.h"
#include "tests/unit/trainer/group/identity_of_tests.h"
#include "tests/unit/trainer/loop/support.h"
#include "trainer/collective/collective_coordinator.h"
#include "trainer/compute/cuda/engine.h"
#include "trainer/group/rendezvous_server.h"
#include "trainer/loop/synchronizers/collective_synchronizer.h"
#include "trainer/loop/synchronizers/local_synchronizer.h"

namespace muster::loop {
namespace {

using compute::testing::Links;
using Bits = std::vector<std::vector<float>>;  // of parameters and slots

struct Shape {
  int members;
  int devices;
  std::string optimizer;
};

MakeEngine on_gpus(Links links) {
  return [links](const compute::ModelSpec& model, const compute::EngineOptions& options) {
    return std::make_unique<compute::cuda::CudaEngine>(
        compute::build_graph(model), options,
        compute::testing::make_simulated_gpu(compute::testing::ThreadOrder::ascending, links));
  };
}

Training training_of(const std::string& optimizer, int devices) {
  return Training::load(write_training(
      fresh_folder("linked-gpus"),
      "epochs: 2\noptimizer: " + optimizer + "\ndevices: " + std::to_string(devices) + "\n"));
}

Bits bits_of(const Assembly& assembly) {
  Bits bits;
  for (const compute::Floats& copy : assembly.copies) bits.emplace_back(copy.begin(), copy.end());
  return bits;
}

// Returns the state that one process with as many devices comes to on the host.
Bits expected_of(const Shape& shape) {
  Assembly assembly = assemble(training_of(shape.optimizer, shape.members * shape.devices), 1,
                               false, {1, false}, 0, on_gpus(Links::impossible));
  LocalSynchronizer synchronizer(assembly, nullptr, 1);
  while (synchronizer.has_next()) synchronizer.step();
  synchronizer.snapshot();
  return bits_of(assembly);
}

// The rendezvous and the coordinator of a job, which rank 0 has otherwise.
class Job {
 public:
  explicit Job(const Shape& shape)
      : shape_(shape),
        server_(free_address(), group::identity_of_tests(), expected(shape)),
        store_(folder_ / "checkpoints", 2),
        coordinator_(server_, store_, setup()) {}

  const Shape& shape() const { return shape_; }
  group::RendezvousServer& server() { return server_; }
  CollectivePlan plan() const { return server_.view().collective(); }

 private:
  static group::PeerRegistry::Expected expected(const Shape& shape) {
    group::PeerRegistry::Expected expected;
    expected.job_uid = "u";
    expected.chiefs = 1;
    expected.workers = expected.most_workers = shape.members - 1;
    expected.shards = 0;
    return expected;
  }
  collective::CollectiveCoordinator::Setup setup() const {
    collective::CollectiveCoordinator::Setup setup;
    setup.storage = folder_;
    setup.job_uid = "u";
    setup.resume_at = [](const checkpoint::Store::Found& found) { return found.manifest.position; };
    setup.group.members = shape_.members;
    setup.group.devices = shape_.devices;
    setup.group.link = collective::CollectiveFormation::Link::on_one_host;
    return setup;
  }

  const Shape shape_;
  const std::filesystem::path folder_ = fresh_folder("linked-gpus-job");
  group::RendezvousServer server_;
  checkpoint::Store store_;
  collective::CollectiveCoordinator coordinator_;
};

class Member {
 public:
  Member(Job& job, int rank, Links links = Links::possible)
      : job_(job),
        assembly_(assemble(training_of(job.shape().optimizer, job.shape().devices),
                           job.shape().members, false, {1, false}, rank, on_gpus(links))) {
    static std::atomic<uint64_t> processes{100};
    Hello hello;
    hello.set_job_uid("u");
    hello.set_role(rank == 0 ? "chief" : "worker");
    hello.set_index(static_cast<uint32_t>(rank == 0 ? 0 : rank - 1));
    hello.set_host("here");
    hello.set_fuses(true);
    hello.set_incarnation(++processes);
    std::string why;
    for (const std::string& name : compute::EngineGroup::link_names(assembly_.engines(), why))
      hello.add_gpus(name);
    CollectiveSynchronizer::Setup setup;
    setup.incarnation = hello.incarnation();
    setup.host = "127.0.0.1";
    setup.identity = group::identity_of_tests();
    client_.emplace(job.server().local_channel(), "the chief", hello,
                    [this](PeerMessage& message) { report_.fill(message); });
    synchronizer_.emplace(assembly_, *client_, report_, setup);
  }

  // Trains up to a step, or to the end.
  void train(uint64_t until = 1'000'000) {
    ASSERT_TRUE(synchronizer_->start({}));
    while (synchronizer_->position().step < until && synchronizer_->has_next()) {
      const auto made = synchronizer_->step();
      if (made.state == Synchronizer::State::rejoin) {
        ++rejoined;
        ASSERT_TRUE(synchronizer_->start({}));
      }
      linked += job_.plan().linked_gpus() ? 1 : 0;
    }
  }
  Bits state() {
    synchronizer_->snapshot();
    return bits_of(assembly_);
  }

  int rejoined = 0, linked = 0;

 private:
  Job& job_;
  Assembly assembly_;
  MemberReport report_;
  std::optional<group::RendezvousClient> client_;
  std::optional<CollectiveSynchronizer> synchronizer_;
};

// Trains each of them to the end, on a thread of its own.
void train_all(std::deque<Member>& members) {
  std::vector<std::jthread> threads;
  for (Member& member : members) threads.emplace_back([&] { member.train(); });
}

class LinkedGpus : public testing::TestWithParam<Shape> {};

TEST_P(LinkedGpus, ComeToTheBitsOfOneProcess) {
  Job job(GetParam());
  std::deque<Member> members;
  for (int rank = 0; rank < GetParam().members; ++rank) members.emplace_back(job, rank);
  train_all(members);
  const Bits expected = expected_of(GetParam());
  for (Member& member : members) {
    EXPECT_EQ(member.state(), expected);
    EXPECT_EQ(member.rejoined, 0);
    EXPECT_GT(member.linked, 5);
  }
}

// The others keep the state, also where one of them has made the step under way and one has not.
TEST_P(LinkedGpus, GoOnWithAProcessInThePlaceOfOneThatIsLost) {
  const int last = GetParam().members - 1;
  for (const uint64_t lost_at : {1, 4}) {
    for (const int lost : {0, last}) {
      Job job(GetParam());
      std::deque<Member> members;
      std::optional<Member> successor;
      {
        std::vector<std::jthread> threads;
        for (int rank = 0; rank <= last; ++rank) {
          if (rank == lost) continue;
          Member& member = members.emplace_back(job, rank);
          threads.emplace_back([&] { member.train(); });
        }
        std::make_unique<Member>(job, lost)->train(lost_at);
        successor.emplace(job, lost);
        successor->train();
      }
      const Bits expected = expected_of(GetParam());
      EXPECT_EQ(successor->state(), expected);
      for (Member& member : members) {
        EXPECT_EQ(member.state(), expected);
        EXPECT_EQ(member.rejoined, 1);
        EXPECT_GT(member.linked, 5);
      }
    }
  }
}

// The host's memory takes the place of links.
TEST_P(LinkedGpus, TrainWithOneThatCannotBeLinked) {
  for (const Links links : {Links::impossible, Links::broken}) {
    Job job(GetParam());
    std::deque<Member> members;
    for (int rank = 0; rank < GetParam().members; ++rank)
      members.emplace_back(job, rank, rank > 0 ? Links::possible : links);
    train_all(members);
    const Bits expected = expected_of(GetParam());
    for (Member& member : members) {
      EXPECT_EQ(member.state(), expected);
      EXPECT_EQ(member.linked, 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, LinkedGpus,
    testing::Values(Shape{2, 1, "{name: adam}"}, Shape{3, 1, "{name: lamb}"},
                    Shape{2, 2, "{name: rmsprop, clipNorm: 0.5, ema: {decay: 0.9}}"}),
    [](const auto& info) {
      return std::to_string(info.param.members) + "x" + std::to_string(info.param.devices);
    });

}  // namespace
}  // namespace muster::loop
