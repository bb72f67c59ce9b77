#include "trainer/compute/engine_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "common/error.h"
#include "tests/unit/trainer/compute/cuda/simulated_gpu.h"
#include "tests/unit/trainer/compute/support.h"
#include "trainer/compute/cuda/engine.h"
#include "trainer/compute/cuda/gpus.h"
#include "trainer/compute/initialize.h"
#include "trainer/compute/tree_sum.h"

namespace muster::compute::testing {
namespace {

constexpr int64_t kRows = 3;  // of each engine

// Engines on simulated GPUs, or on real ones. A thread of its own is each one's.
class Group {
 public:
  Group(int count, const ModelSpec& spec, const OptimizerSpec& rule, bool real = false) {
    std::vector<Engine*> views;
    for (int i = 0; i < count; ++i) {
      EngineOptions options;
      options.device = {DeviceKind::cuda, i};
      options.max_rows = kRows;
      engines_.push_back(std::make_unique<cuda::CudaEngine>(
          build_graph(spec), options, real ? cuda::open_gpu(i) : make_simulated_gpu()));
      views.push_back(engines_.back().get());
    }
    optimizer_ = Optimizer::create(rule, engines_[0]->layout());
    std::string why;
    group_ = EngineGroup::create(views, *optimizer_, why);
    EXPECT_EQ(why, "");
  }

  EngineGroup& group() { return *group_; }
  Engine& engine(int i) { return *engines_[static_cast<size_t>(i)]; }
  const Optimizer& optimizer() const { return *optimizer_; }

  void start() {
    HostView view(group_->parameters());
    initialize_parameters(engine(0).layout(), 1, view.values());
    view.store();
    start_slots(*optimizer_, group_->parameters(), group_->slots());
  }

  // Runs work(i) on a thread for each engine.
  void each(const std::function<void(int)>& work) {
    std::vector<std::jthread> threads;
    for (int i = 0; i < static_cast<int>(engines_.size()); ++i) threads.emplace_back(work, i);
  }

 private:
  std::vector<std::unique_ptr<cuda::CudaEngine>> engines_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<EngineGroup> group_;
};

ModelSpec normalized_network() {
  return model(23,
               {dense("a", 37, Activation::relu), layer("n", BatchNormalization{}),
                dense("b", 19, Activation::relu), dense("y", 5, Activation::linear)},
               5);
}

UpdateArguments arguments_of(uint64_t t, const LossSums& sums) {
  UpdateArguments arguments;
  arguments.t = t;
  arguments.divide_by(sums);
  return arguments;
}

// Three steps of the engines together, and the same with one engine, whose gradients the host adds
// up.
void expect_bits_of_host(int count, const OptimizerSpec& rule, bool real) {
  const OwnedBatch batch(count * kRows, 23, 5);
  Group together(count, normalized_network(), rule, real);
  together.start();
  Group alone(1, normalized_network(), rule, real);
  alone.start();
  for (uint64_t t = 1; t <= 3; ++t) {
    std::vector<LossSums> sums(static_cast<size_t>(count));
    together.each([&](int i) {
      sums[static_cast<size_t>(i)] =
          together.engine(i).compute_gradients(batch.part(i * kRows, kRows));
    });
    LossSums all;
    for (const LossSums& one : sums) all += one;
    together.each([&](int i) { together.group().update(i, arguments_of(t, all)); });

    Engine& engine = alone.engine(0);
    std::vector<std::vector<float>> leaves;
    for (int i = 0; i < count; ++i) {
      engine.compute_gradients(batch.part(i * kRows, kRows));
      leaves.push_back(values(engine.gradients()));
    }
    const std::function<std::vector<float>(Subtree)> sum = [&](Subtree node) {
      if (node.size() == 1) return leaves[static_cast<size_t>(node.begin)];
      std::vector<float> left = sum(node.first());
      const std::vector<float> right = sum(node.second());
      std::ranges::transform(left, right, left.begin(), std::plus());
      return left;
    };
    put(engine.gradients(), 0, sum({0, count}));
    alone.group().update(0, arguments_of(t, all));
  }
  const std::vector<float> expected = values(alone.engine(0).parameters());
  for (int i = 0; i < count; ++i) EXPECT_EQ(values(together.engine(i).parameters()), expected);
  for (size_t slot = 0; slot < together.group().slots().size(); ++slot)
    EXPECT_EQ(values(*together.group().slots()[slot]), values(*alone.group().slots()[slot]));
}

class EngineGroupTest : public ::testing::TestWithParam<int> {};

TEST_P(EngineGroupTest, HasTheBitsOfASumOnTheHost) {
  OptimizerSpec averaged = RmsProp{};
  averaged.average = 0.9;
  OptimizerSpec clipped = Adam{};
  clipped.clip_norm = 0.1f;
  for (const OptimizerSpec& rule :
       {OptimizerSpec{Sgd{}}, OptimizerSpec{Adam{}}, averaged, clipped, OptimizerSpec{Lamb{}}})
    expect_bits_of_host(GetParam(), rule, false);
}

INSTANTIATE_TEST_SUITE_P(Engines, EngineGroupTest, ::testing::Values(2, 3, 5, 8));

TEST(EngineGroup, ShowsTheMemoryOfAllAsOne) {
  Group together(3, normalized_network(), Adam{});
  together.start();
  const std::vector<float> begin = values(together.engine(0).parameters());
  for (int i = 1; i < 3; ++i) EXPECT_EQ(values(together.engine(i).parameters()), begin);
  Memory& slot = *together.group().slots()[1];
  std::vector<float> numbers(slot.size());
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  put(slot, 0, numbers);
  EXPECT_EQ(values(slot), numbers);
  std::vector<float> part(slot.size() - 20);
  slot.read({10, slot.size() - 10}, part).wait();
  EXPECT_TRUE(std::ranges::equal(part, std::span(numbers).subspan(10, part.size())));
}

TEST(EngineGroup, EndsOnAllThreadsWhenOneDeviceFails) {
  Group together(3, normalized_network(), Adam{});
  together.start();
  lose(dynamic_cast<cuda::CudaEngine&>(together.engine(1)).gpu());
  std::atomic<int> failed{0}, ended{0};
  together.each([&](int i) {
    LossSums sums;
    sums.weight = sums.rows = 1;
    try {
      together.group().update(i, arguments_of(1, sums));
    } catch (const DeviceError& error) {
      if (error.lost()) ++failed;
    } catch (const Unavailable&) {
      ++ended;
    }
  });
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(ended, 2);
}

// By NCCL, as many GPUs as this machine has, up to two.
TEST(EngineGroup, HasTheBitsOfASumOnTheHost_Gpu) {
  if (is_missing(Backend::gpu)) GTEST_SKIP() << kNoGpu;
  expect_bits_of_host(std::min(cuda::gpu_count(), 2), Adam{}, true);
}

}  // namespace
}  // namespace muster::compute::testing
