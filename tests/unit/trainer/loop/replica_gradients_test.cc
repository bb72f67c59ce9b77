#include "trainer/loop/replica_gradients.h"

#include <gtest/gtest.h>

#include <bit>
#include <stdexcept>

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
  std::vector<Device> all() {
    std::vector<Device> devices;
    for (Assembly& assembly : assemblies_) devices.push_back({*assembly.engine, *assembly.feed});
    return devices;
  }
  const Workload& workload() const { return *assemblies_[0].workload; }
  size_t floats() const { return assemblies_[0].engine->layout().size(); }

 private:
  std::vector<Assembly> assemblies_;
};

struct Sum {
  std::vector<uint32_t> bits;  // of the gradients
  std::vector<compute::LossSums> sums;
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
  Sum compute(int devices, int replicas, compute::Subtree node, int accumulation,
              bool rounded = false) const {
    Devices own(training(accumulation), devices, replicas);
    ReplicaGradients gradients(own.all(), false, rounded);
    EXPECT_EQ(gradients.devices(), devices);
    compute::Floats weights = parameters(own.floats());
    compute::Floats target(own.floats());
    Sum sum;
    sum.sums.resize(static_cast<size_t>(node.size()));
    // Twice: nothing is left of what was there.
    for (int time = 0; time < 2; ++time)
      gradients.compute(
          node, [&](int replica) { return own.workload().part_of({}, replica); }, weights, target,
          sum.sums);
    for (const float value : target) sum.bits.push_back(std::bit_cast<uint32_t>(value));
    return sum;
  }

  const std::filesystem::path folder_;
};

// Also what lies under one node of several, and batches beyond the epoch's last.
TEST_F(ReplicaGradientsTest, HaveTheSameBitsWhicheverDeviceComputesWhat) {
  struct Case {
    int replicas;
    compute::Subtree node;
  };
  for (const auto& [accumulation, rounded] :
       {std::pair(1, false), std::pair(2, false), std::pair(1, true), std::pair(2, true)})
    for (const auto& [replicas, node] : {Case{1, {0, 1}}, Case{2, {0, 2}}, Case{5, {0, 5}},
                                         Case{7, {4, 7}}, Case{8, {0, 8}}, Case{13, {0, 13}}}) {
      const Sum one = compute(1, replicas, node, accumulation, rounded);
      for (const int devices : {2, 3}) {
        const Sum several = compute(devices, replicas, node, accumulation, rounded);
        EXPECT_EQ(several.bits, one.bits)
            << devices << " devices, " << replicas << " replicas, accumulation " << accumulation
            << ", rounded " << rounded;
        for (size_t i = 0; i < one.sums.size(); ++i) {
          EXPECT_EQ(several.sums[i].loss, one.sums[i].loss);
          EXPECT_EQ(several.sums[i].correct, one.sums[i].correct);
          EXPECT_EQ(several.sums[i].rows, one.sums[i].rows);
        }
      }
    }
}

// A leaf is what all of a replica's batches come to: rounded when it is read, not before.
TEST_F(ReplicaGradientsTest, OfOneReplicaAreNotRoundedYet) {
  for (const int accumulation : {1, 3})
    EXPECT_EQ(compute(1, 1, {0, 1}, accumulation, true).bits,
              compute(1, 1, {0, 1}, accumulation).bits);
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
    leaves.push_back(compute(1, kReplicas, {replica, replica + 1}, 1, GetParam()));
  const Sum all = compute(3, kReplicas, {0, kReplicas}, 1, GetParam());
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

TEST_F(ReplicaGradientsTest, WhatADevicesThreadThrowsReachesTheCaller) {
  for (const int devices : {1, 2, 3}) {
    Devices own(training(1), devices, 3);
    ReplicaGradients gradients(own.all(), false);
    for (int thrower = 0; thrower < devices; ++thrower)
      EXPECT_THROW(gradients.each([&](int device) {
        if (device == thrower) throw std::out_of_range("of a device");
      }),
                   std::out_of_range);
    compute::Floats weights = parameters(own.floats());
    compute::Floats target(own.floats());
    std::vector<compute::LossSums> sums(3);
    const auto work_of = [&](int replica) { return own.workload().part_of({}, replica); };
    for (int thrower = 0; thrower < 3; ++thrower)
      EXPECT_THROW(gradients.compute(
                       {0, 3},
                       [&](int replica) {
                         if (replica == thrower) throw std::out_of_range("of a replica");
                         return work_of(replica);
                       },
                       weights, target, sums),
                   std::out_of_range);
    // And it is as good as before.
    gradients.compute({0, 3}, work_of, weights, target, sums);
    const Sum expected = compute(1, 3, {0, 3}, 1);
    for (size_t i = 0; i < target.size(); ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(target[i]), expected.bits[i]);
  }
}

}  // namespace
}  // namespace muster::loop
