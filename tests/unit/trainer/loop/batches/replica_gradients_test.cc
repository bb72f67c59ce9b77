#include "trainer/loop/batches/replica_gradients.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <thread>

#include "tests/unit/trainer/loop/support.h"

namespace muster::loop {
namespace {

// Some devices of one process: engines of one model and feeds of one training.
class Devices {
 public:
  Devices(const std::filesystem::path& training, int count, int replicas) {
    for (int i = 0; i < count; ++i)
      assemblies_.push_back(assemble(Training::load(training), replicas, true, {1, false}));
  }
  std::vector<FedEngine> all() {
    std::vector<FedEngine> devices;
    for (Assembly& assembly : assemblies_) devices.push_back({*assembly.engine, *assembly.feed});
    return devices;
  }
  const Workload& workload() const { return *assemblies_[0].workload; }
  size_t floats() const { return assemblies_[0].engine->layout().size(); }

 private:
  std::vector<Assembly> assemblies_;
};

struct Sum {
  std::vector<uint32_t> bits;  // of the gradients, of one node after the other
  std::vector<compute::LossSums> sums;
};

// Where the sums under some nodes are to be.
class Targets {
 public:
  Targets(const std::vector<compute::Subtree>& nodes, size_t floats)
      : sums_(nodes.size(), compute::Floats(floats)) {
    for (size_t i = 0; i < nodes.size(); ++i) all_.push_back({nodes[i], sums_[i]});
  }
  std::span<const ReplicaGradients::Target> all() const { return all_; }
  int replicas() const { return all_.back().node.end - all_.front().node.begin; }
  std::vector<uint32_t> bits() const {
    std::vector<uint32_t> bits;
    for (const compute::Floats& sum : sums_)
      for (const float value : sum) bits.push_back(std::bit_cast<uint32_t>(value));
    return bits;
  }

 private:
  std::vector<compute::Floats> sums_;
  std::vector<ReplicaGradients::Target> all_;
};

class ReplicaGradientsTest : public ::testing::Test {
 protected:
  ReplicaGradientsTest() : folder_(fresh_folder("replicas")) {}
  std::filesystem::path training(int accumulation) const {
    return write_training(
        folder_, "epochs: 2\ngradientAccumulation: " + std::to_string(accumulation) + "\n");
  }
  static compute::Floats parameters(size_t floats) {
    compute::Floats parameters(floats);
    for (size_t i = 0; i < floats; ++i)
      parameters[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50) / 100.0f;
    return parameters;
  }
  // Of the first step, by so many devices.
  Sum compute(int devices, int replicas, const std::vector<compute::Subtree>& nodes,
              int accumulation, bool rounded = false) const {
    Devices own(training(accumulation), devices, replicas);
    compute::Floats weights = parameters(own.floats());  // outlive those that compute with them
    ReplicaGradients gradients(own.all(), false, rounded);
    EXPECT_EQ(gradients.devices(), devices);
    gradients.load(weights);
    Targets targets(nodes, own.floats());
    Sum sum;
    sum.sums.resize(static_cast<size_t>(targets.replicas()));
    // Twice: nothing is left of what was there.
    for (int time = 0; time < 2; ++time)
      gradients.compute(
          targets.all(), [&](const Turn& turn) { return own.workload().part_of({}, turn); },
          sum.sums);
    sum.bits = targets.bits();
    return sum;
  }

  const std::filesystem::path folder_;
};

// Also what lies under some nodes of several, and batches beyond the epoch's last.
TEST_F(ReplicaGradientsTest, HaveTheSameBitsWhicheverDeviceComputesWhat) {
  struct Case {
    int replicas;
    std::vector<compute::Subtree> nodes;
  };
  for (const auto& [accumulation, rounded] :
       {std::pair(1, false), std::pair(2, false), std::pair(1, true), std::pair(2, true)})
    for (const auto& [replicas, nodes] :
         {Case{1, {{0, 1}}}, Case{2, {{0, 2}}}, Case{5, {{0, 5}}}, Case{7, {{4, 7}}},
          Case{8, {{0, 8}}}, Case{13, {{0, 13}}}, Case{6, {{0, 2}, {2, 3}}},
          Case{6, {{3, 4}, {4, 6}}}, Case{13, {{3, 4}, {4, 8}, {8, 10}}}}) {
      const Sum one = compute(1, replicas, nodes, accumulation, rounded);
      for (const int devices : {2, 3}) {
        const Sum several = compute(devices, replicas, nodes, accumulation, rounded);
        EXPECT_EQ(several.bits, one.bits)
            << devices << " devices, " << replicas << " replicas, accumulation " << accumulation
            << ", rounded " << rounded;
        for (size_t i = 0; i < one.sums.size(); ++i) {
          EXPECT_EQ(several.sums[i].loss, one.sums[i].loss);
          EXPECT_EQ(several.sums[i].terms, one.sums[i].terms);
          EXPECT_EQ(several.sums[i].rows, one.sums[i].rows);
        }
      }
    }
}

// A leaf is what all of a replica's batches come to: rounded when it is read, not before.
TEST_F(ReplicaGradientsTest, OfOneReplicaAreNotRoundedYet) {
  for (const int accumulation : {1, 3})
    EXPECT_EQ(compute(1, 1, {{0, 1}}, accumulation, true).bits,
              compute(1, 1, {{0, 1}}, accumulation).bits);
}

// As whoever else holds some of the leaves adds them up.
class ReplicaTreeTest : public ReplicaGradientsTest, public ::testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Sums, ReplicaTreeTest, ::testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "Rounded" : "AsTheyAre");
});

TEST_P(ReplicaTreeTest, AddUpInTheReplicasTree) {
  constexpr int kReplicas = 7;
  std::vector<Sum> leaves;
  for (int replica = 0; replica < kReplicas; ++replica)
    leaves.push_back(compute(1, kReplicas, {{replica, replica + 1}}, 1, GetParam()));
  const Sum all = compute(3, kReplicas, {{0, kReplicas}}, 1, GetParam());
  std::vector<std::vector<float>> buffers;
  std::vector<const float*> pointers;
  std::vector<compute::Subtree> pieces;
  for (int replica = 0; replica < kReplicas; ++replica) {
    auto& buffer = buffers.emplace_back();
    for (const uint32_t bits : leaves[static_cast<size_t>(replica)].bits)
      buffer.push_back(std::bit_cast<float>(bits));
    pieces.push_back({replica, replica + 1});
  }
  for (const auto& buffer : buffers) pointers.push_back(buffer.data());
  compute::TreeSum tree(pieces, all.bits.size(), GetParam());
  const float* const sum = tree.sum(pointers, 0, all.bits.size());
  const compute::TreeArithmetic arithmetic(GetParam());
  for (size_t i = 0; i < all.bits.size(); ++i) {
    float expected = std::bit_cast<float>(all.bits[i]);
    arithmetic.read(&expected, {&expected, 1});
    ASSERT_EQ(std::bit_cast<uint32_t>(sum[i]), std::bit_cast<uint32_t>(expected)) << i;
  }
  int64_t rows = 0;
  for (const compute::LossSums& sums : all.sums) rows += sums.rows;
  EXPECT_EQ(rows, 32 * kReplicas);
}

// No device computes two replicas where another one has none, wherever a node ends.
TEST_F(ReplicaGradientsTest, NoDeviceWaitsForANodeToEnd) {
  for (const int devices : {1, 2, 3})
    for (const auto& nodes : std::vector<std::vector<compute::Subtree>>{
             {{0, 2}, {2, 3}}, {{3, 4}, {4, 6}}, {{1, 2}, {2, 4}, {4, 5}}}) {
      Devices own(training(1), devices, 6);
      compute::Floats weights = parameters(own.floats());
      ReplicaGradients gradients(own.all(), false);
      gradients.load(weights);
      const Targets targets(nodes, own.floats());
      const auto replicas = static_cast<size_t>(targets.replicas());
      std::vector<compute::LossSums> sums(replicas);
      std::vector<std::thread::id> threads(replicas);
      gradients.compute(
          targets.all(),
          [&](const Turn& turn) {
            threads[static_cast<size_t>(turn.replica() - nodes.front().begin)] =
                std::this_thread::get_id();
            return own.workload().part_of({}, turn);
          },
          sums);
      const int most = data::quotient_up(targets.replicas(), devices);
      for (const std::thread::id thread : threads)
        EXPECT_LE(std::ranges::count(threads, thread), most)
            << devices << " devices, nodes from " << nodes.front().begin << " on";
    }
}

data::Samples blobs_in_a_file(uint64_t count) {
  data::Samples samples;
  samples.origins = {{0, "blobs", 0}};
  samples.count = count;
  samples.shape = {8};
  samples.features = data::Storage(count * 8 * sizeof(float), data::StorageKind::temporary_file);
  samples.labels.resize(count);
  for (uint64_t i = 0; i < count; ++i) samples.labels[i] = static_cast<int32_t>(i % 4);
  std::ranges::fill(samples.features.floats(), 0.5f);
  samples.label_count = 4;
  return samples;
}

// Whatever a member's nodes and devices are, what each of them copies ahead is what it asks for
// next: within a step, from step to step and beyond an epoch's end.
TEST_F(ReplicaGradientsTest, DevicesReadNothingTwice) {
  constexpr int kReplicas = 6;
  constexpr int64_t kAhead = 64;  // samples
  for (const int devices : {1, 2, 3})
    for (const auto& nodes :
         std::vector<std::vector<compute::Subtree>>{{{0, 4}, {4, 6}}, {{3, 4}, {4, 6}}, {{5, 6}}})
      for (const int accumulation : {1, 3}) {
        Devices own(training(accumulation), devices, kReplicas);
        const data::BatchRule rule{.rows = 32, .accumulation = accumulation};
        const CountedDataset dataset(blobs_in_a_file(32 * 40));
        const auto shards = data::Shards::by_record(dataset.size(), rule);
        spec::TrainingSpec spec;
        spec.batch_size = rule.rows;
        spec.gradient_accumulation = accumulation;
        spec.epochs = 3;
        const Workload workload(spec, shards, kReplicas, true);
        const Targets targets(nodes, own.floats());
        std::vector<compute::LossSums> sums(static_cast<size_t>(targets.replicas()));
        compute::Floats weights = parameters(own.floats());
        int64_t rows = 0;
        {
          std::vector<std::unique_ptr<Feed>> feeds;
          std::vector<FedEngine> fed;
          for (const FedEngine& device : own.all()) {
            feeds.push_back(std::make_unique<Feed>(
                dataset, shards, Feed::Options{.prefetch = kAhead, .accumulation = accumulation}));
            fed.push_back({device.engine, *feeds.back()});
          }
          ReplicaGradients gradients(fed, false);
          gradients.load(weights);
          for (checkpoint::Position at; !workload.finished(at); workload.advance(at)) {
            gradients.compute(
                targets.all(), [&](const Turn& turn) { return workload.part_of(at, turn); }, sums);
            for (const compute::LossSums& one : sums) rows += one.rows;
          }
        }
        EXPECT_LE(static_cast<int64_t>(dataset.read()), rows + devices * kAhead)
            << devices << " devices, replicas from " << nodes.front().begin << " on, accumulation "
            << accumulation;
      }
}

// All that a member brings is there when it is told that some of it is complete.
TEST_F(ReplicaGradientsTest, ASumIsCompleteOnlyOnceAllOthersAreThere) {
  struct Case {
    int devices;
    std::vector<compute::Subtree> nodes;
    bool told;
  };
  for (const auto& [devices, nodes, told] :
       {Case{1, {{0, 1}}, true}, Case{1, {{0, 2}, {2, 3}}, true}, Case{1, {{3, 4}, {4, 6}}, false},
        Case{2, {{0, 1}}, true}, Case{2, {{0, 2}, {2, 3}}, true}, Case{2, {{1, 2}, {2, 3}}, false},
        Case{3, {{0, 2}, {2, 3}}, false}, Case{3, {{1, 2}, {2, 4}, {4, 5}}, true}}) {
    const Sum expected = compute(devices, 6, nodes, 1);
    Devices own(training(1), devices, 6);
    compute::Floats weights = parameters(own.floats());
    ReplicaGradients gradients(own.all(), false);
    gradients.load(weights);
    const Targets targets(nodes, own.floats());
    std::vector<compute::LossSums> sums(static_cast<size_t>(targets.replicas()));
    const size_t others = (nodes.size() - 1) * own.floats();
    std::vector<size_t> ends;
    gradients.compute(
        targets.all(), [&](const Turn& turn) { return own.workload().part_of({}, turn); }, sums,
        [&](size_t end) {
          ends.push_back(end);
          const std::vector<uint32_t> bits = targets.bits();
          EXPECT_TRUE(std::equal(bits.begin(), bits.begin() + static_cast<std::ptrdiff_t>(others),
                                 expected.bits.begin()))
              << devices << " devices, " << nodes.size() << " nodes";
        });
    EXPECT_EQ(!ends.empty(), told) << devices << " devices, " << nodes.size() << " nodes";
    EXPECT_EQ(targets.bits(), expected.bits);
  }
}

TEST_F(ReplicaGradientsTest, WhatADevicesThreadThrowsReachesTheCaller) {
  for (const int devices : {1, 2, 3}) {
    Devices own(training(1), devices, 3);
    compute::Floats weights = parameters(own.floats());
    ReplicaGradients gradients(own.all(), false);
    for (int thrower = 0; thrower < devices; ++thrower)
      EXPECT_THROW(gradients.each([&](int device) {
        if (device == thrower) throw std::out_of_range("of a device");
      }),
                   std::out_of_range);
    gradients.load(weights);
    const Targets targets({{0, 3}}, own.floats());
    std::vector<compute::LossSums> sums(3);
    const auto work_of = [&](const Turn& turn) { return own.workload().part_of({}, turn); };
    for (int thrower = 0; thrower < 3; ++thrower)
      EXPECT_THROW(gradients.compute(
                       targets.all(),
                       [&](const Turn& turn) {
                         if (turn.replica() == thrower) throw std::out_of_range("of a replica");
                         return work_of(turn);
                       },
                       sums),
                   std::out_of_range);
    // And it is as good as before.
    gradients.compute(targets.all(), work_of, sums);
    EXPECT_EQ(targets.bits(), compute(1, 3, {{0, 3}}, 1).bits);
  }
}

}  // namespace
}  // namespace muster::loop
