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
    group_ = EngineGroup::create(views, *optimizer_);
    std::string why;
    names_ = EngineGroup::link_names(views, why);
    EXPECT_EQ(why, "");
  }

  EngineGroup& group() { return *group_; }
  EngineGroup::Link& link() { return *link_; }
  const std::vector<std::string>& names() const { return names_; }
  Engine& engine(int i) { return *engines_[static_cast<size_t>(i)]; }
  const Optimizer& optimizer() const { return *optimizer_; }

  void join(const LinkedDevices& devices) { link_ = group_->link(devices); }
  void leave() { link_.reset(); }

  // Links the engines with each other, and begins.
  void start() {
    join({.count = static_cast<int>(engines_.size()), .id = group_->make_link_id()});
    initialize();
  }
  void initialize() {
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
  std::vector<std::string> names_;
  std::unique_ptr<EngineGroup::Link> link_;
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

void take_step(Group& group, int engine, const UpdateArguments& arguments) {
  group.link().ask_sums(engine);
  group.link().await_sums(engine);
  group.link().update(engine, arguments);
}

// One engine, whose gradients the host adds up, makes the state that several engines must come to.
class OnHost {
 public:
  OnHost(const OptimizerSpec& rule, bool real) : alone_(1, normalized_network(), rule, real) {
    alone_.start();
  }

  void step(uint64_t t, const OwnedBatch& batch, int count, const LossSums& all) {
    Engine& engine = alone_.engine(0);
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
    take_step(alone_, 0, arguments_of(t, all));
  }
  void expect_same(Group& group, int engines) {
    const std::vector<float> expected = values(alone_.engine(0).parameters());
    for (int i = 0; i < engines; ++i) EXPECT_EQ(values(group.engine(i).parameters()), expected);
    EXPECT_EQ(values(group.group().parameters()), expected);
    for (size_t slot = 0; slot < group.group().slots().size(); ++slot)
      EXPECT_EQ(values(*group.group().slots()[slot]), values(*alone_.group().slots()[slot]));
  }

 private:
  Group alone_;
};

// Three steps of the engines together.
void expect_bits_of_host(int count, const OptimizerSpec& rule, bool real) {
  const OwnedBatch batch(count * kRows, 23, 5);
  Group together(count, normalized_network(), rule, real);
  together.start();
  OnHost host(rule, real);
  for (uint64_t t = 1; t <= 3; ++t) {
    std::vector<LossSums> sums(static_cast<size_t>(count));
    together.each([&](int i) {
      sums[static_cast<size_t>(i)] =
          together.engine(i).compute_gradients(batch.part(i * kRows, kRows));
    });
    LossSums all;
    for (const LossSums& one : sums) all += one;
    together.each([&](int i) { take_step(together, i, arguments_of(t, all)); });
    host.step(t, batch, count, all);
  }
  host.expect_same(together, count);
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
      take_step(together, i, arguments_of(1, sums));
    } catch (const DeviceError& error) {
      if (error.lost()) ++failed;
    } catch (const Unavailable&) {
      ++ended;
    }
  });
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(ended, 2);
}

// Processes, each with some engines.
class Processes {
 public:
  Processes(const std::vector<int>& engines, const OptimizerSpec& rule) {
    for (const int count : engines) {
      groups_.push_back(std::make_unique<Group>(count, normalized_network(), rule));
      firsts_.push_back(count_);
      count_ += count;
    }
  }

  int count() const { return count_; }
  size_t size() const { return groups_.size(); }
  Group& operator[](size_t process) { return *groups_[process]; }
  void join(const std::function<void()>& watch = [] {}) {
    const std::string id = groups_[0]->group().make_link_id();
    for (size_t i = 0; i < groups_.size(); ++i)
      groups_[i]->join({.count = count_, .first = firsts_[i], .id = id, .watch = watch});
  }
  // Runs work(process, engine) on a thread for each engine of each process but the last `without`.
  void each(const std::function<void(size_t, int)>& work, size_t without = 0) {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i + without < groups_.size(); ++i)
      threads.emplace_back([&, i] { groups_[i]->each([&](int engine) { work(i, engine); }); });
  }
  // Computes the gradients of all engines. Returns their sums.
  LossSums compute(const OwnedBatch& batch) {
    std::vector<LossSums> sums(static_cast<size_t>(count_));
    each([&](size_t process, int engine) {
      const int at = firsts_[process] + engine;
      sums[static_cast<size_t>(at)] =
          groups_[process]->engine(engine).compute_gradients(batch.part(at * kRows, kRows));
    });
    LossSums all;
    for (const LossSums& one : sums) all += one;
    return all;
  }

 private:
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<int> firsts_;
  int count_ = 0;
};

TEST(EngineGroup, ProcessesThatAreLinkedHaveTheBitsOfASumOnTheHost) {
  for (const auto& engines : {std::vector<int>{1, 1}, {1, 1, 1}, {2, 2, 2}}) {
    Processes all(engines, Adam{});
    const OwnedBatch batch(all.count() * kRows, 23, 5);
    OnHost host(Adam{}, false);
    all.join();
    for (size_t i = 0; i < all.size(); ++i) all[i].initialize();
    for (uint64_t t = 1; t <= 3; ++t) {
      if (t == 3) all.join();  // a new link takes the place of the one before
      const LossSums sums = all.compute(batch);
      all.each([&](size_t process, int engine) {
        take_step(all[process], engine, arguments_of(t, sums));
      });
      host.step(t, batch, all.count(), sums);
    }
    for (size_t i = 0; i < all.size(); ++i) host.expect_same(all[i], engines[i]);
  }
}

// The processes that are left go on from the state of the step before.
TEST(EngineGroup, AProcessThatIsMissingEndsTheWaitAndNotTheState) {
  for (const auto& engines : {std::vector<int>{1, 1}, {2, 2}, {1, 1, 1}}) {
    Processes all(engines, Adam{});
    const OwnedBatch batch(all.count() * kRows, 23, 5);
    std::atomic<bool> over{false};
    all.join([&] {
      if (over) throw Unavailable("over");
    });
    for (size_t i = 0; i < all.size(); ++i) all[i].initialize();
    const auto step = [&](uint64_t t) {
      const LossSums sums = all.compute(batch);
      all.each([&](size_t process, int engine) {
        take_step(all[process], engine, arguments_of(t, sums));
      });
    };
    step(1);
    const std::vector<float> before = values(all[0].group().parameters());
    all.compute(batch);
    std::jthread ends([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      over = true;
    });
    all.each(
        [&](size_t process, int engine) {
          all[process].link().ask_sums(engine);
          EXPECT_THROW(all[process].link().await_sums(engine), Unavailable);
        },
        1);
    ends.join();
    over = false;
    all.join();
    for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(values(all[i].group().parameters()), before);
    step(2);
    EXPECT_NE(values(all[0].group().parameters()), before);
    for (size_t i = 1; i < all.size(); ++i)
      EXPECT_EQ(values(all[i].group().parameters()), values(all[0].group().parameters()));
  }
}

// Members that ask for sums and never wait for them may leave.
TEST(EngineGroup, ALinkThatEndsGivesUpWhatWasAsked) {
  Processes all({1, 1}, Adam{});
  all.join();
  all[0].initialize();
  const std::vector<float> before = values(all[0].group().parameters());
  all[0].link().ask_sums(0);
  all[0].leave();
  EXPECT_EQ(values(all[0].group().parameters()), before);
}

TEST(EngineGroup, NamesItsDevices) {
  Processes all({2, 1}, Adam{});
  std::vector<std::string> names = all[0].names();
  names.push_back(all[1].names().at(0));
  std::ranges::sort(names);
  EXPECT_EQ(names.size(), 3u);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

// The engines' own parameters are theirs again, with what the group has come to.
TEST(EngineGroup, LeavesTheParametersInTheEngines) {
  std::unique_ptr<Engine> engine = std::make_unique<cuda::CudaEngine>(
      build_graph(normalized_network()), EngineOptions{}, make_simulated_gpu());
  const auto optimizer = Optimizer::create(Adam{}, engine->layout());
  Engine* const view = engine.get();
  auto group = EngineGroup::create({&view, 1}, *optimizer);
  put(engine->parameters(), 0, std::vector<float>{1});
  group->link({.id = group->make_link_id()}).reset();
  EXPECT_EQ(values(engine->parameters())[0], 0);
  put(group->parameters(), 0, std::vector<float>{2});
  group.reset();
  EXPECT_EQ(values(engine->parameters())[0], 2);
}

// By NCCL, as many GPUs as this machine has, up to two.
TEST(EngineGroup, HasTheBitsOfASumOnTheHost_Gpu) {
  if (is_missing(Backend::gpu)) GTEST_SKIP() << kNoGpu;
  expect_bits_of_host(std::min(cuda::gpu_count(), 2), Adam{}, true);
}

}  // namespace
}  // namespace muster::compute::testing
