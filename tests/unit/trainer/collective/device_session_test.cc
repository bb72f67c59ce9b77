#include "trainer/collective/device_session.h"

#include <gtest/gtest.h>

#include <atomic>

#include "tests/unit/trainer/collective/group_of_threads.h"
#include "tests/unit/trainer/compute/cuda/simulated_gpu.h"
#include "trainer/compute/cuda/engine.h"

namespace muster::collective {
namespace {

using testing::Reference;
using testing::run_members;
using Outcome = Session::Outcome;

constexpr uint64_t kFirstStep = 3;

compute::ModelSpec network() {
  const auto dense = [](const std::string& name, int64_t units) {
    compute::LayerSpec layer;
    layer.name = name;
    compute::Dense kind;
    kind.units = units;
    layer.kind = kind;
    return layer;
  };
  compute::ModelSpec model;
  model.input_shape = {11};
  model.label_count = 3;
  model.layers = {dense("a", 23), dense("y", 3)};
  return model;
}

// A process with some simulated GPUs.
class Member {
 public:
  Member(int devices, const compute::OptimizerSpec& rule) {
    std::vector<compute::Engine*> views;
    for (int i = 0; i < devices; ++i) {
      engines_.push_back(std::make_unique<compute::cuda::CudaEngine>(
          compute::build_graph(network()), compute::EngineOptions{},
          compute::testing::make_simulated_gpu()));
      views.push_back(engines_.back().get());
    }
    optimizer_ = compute::Optimizer::create(rule, layout());
    group_ = compute::EngineGroup::create(views, *optimizer_);
  }

  const compute::ParameterLayout& layout() const { return engines_.front()->layout(); }
  int devices() const { return static_cast<int>(engines_.size()); }
  compute::EngineGroup& group() { return *group_; }
  DeviceSession& session() { return *session_; }

  void join(std::unique_ptr<WireGroup> control, const GroupShape& shape, int member,
            const std::string& id, const Reference::State& state, const Session::Watch& watch) {
    first_ = shape.replicas_of(member).begin;
    session_ = std::make_unique<DeviceSession>(
        std::move(control), *group_, shape, member, state.step, id,
        [this](const std::function<void(int)>& work) { each(work); }, watch);
    group_->parameters().write({0, state.buffers[0].size()}, state.buffers[0]).wait();
    for (size_t i = 0; i < group_->slots().size(); ++i)
      group_->slots()[i]->write({0, layout().size()}, state.buffers[1 + i]).wait();
  }
  void leave() { session_.reset(); }

  Session::StepResult step(const Reference& reference, uint64_t step, const Session::Watch& watch,
                           bool compare = false) {
    compute::Floats parameters(layout().size());
    session_->read_parameters({0, parameters.size()}, parameters);
    std::vector<compute::LossSums> sums;
    for (int i = 0; i < devices(); ++i) {
      const int replica = first_ + i;
      const auto gradient = reference.gradient(step, {replica, replica + 1}, parameters);
      engines_[static_cast<size_t>(i)]->gradients().write({0, gradient.size()}, gradient).wait();
      sums.push_back(reference.sums(step, replica));
    }
    Contribution contribution(sums);
    contribution.compare = compare;
    return session_->step(step, contribution, testing::arguments_of(reference, step), watch);
  }

 private:
  // A thread for each device; what one of them throws is thrown at the end.
  void each(const std::function<void(int)>& work) {
    std::vector<std::exception_ptr> thrown(engines_.size());
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < devices(); ++i)
        threads.emplace_back([&, i] {
          try {
            work(i);
          } catch (...) {
            thrown[static_cast<size_t>(i)] = std::current_exception();
          }
        });
    }
    for (const auto& one : thrown)
      if (one) std::rethrow_exception(one);
  }

  std::vector<std::unique_ptr<compute::cuda::CudaEngine>> engines_;
  std::unique_ptr<compute::Optimizer> optimizer_;
  std::unique_ptr<compute::EngineGroup> group_;
  std::unique_ptr<DeviceSession> session_;
  int first_ = 0;
};

// A group of such processes, each on a thread of its own.
class DeviceSessionTest : public ::testing::TestWithParam<std::tuple<int, int>> {
 protected:
  explicit DeviceSessionTest(const compute::OptimizerSpec& rule = compute::Adam{}) : rule_(rule) {
    const auto& [members, devices] = GetParam();
    for (int i = 0; i < members; ++i) members_.push_back(std::make_unique<Member>(devices, rule));
  }

  int count() const { return static_cast<int>(members_.size()); }
  int replicas() const { return count() * members_.front()->devices(); }
  Member& member(int i) { return *members_[static_cast<size_t>(i)]; }
  Reference reference() const { return {rule_, members_.front()->layout(), replicas()}; }

  void join(const Reference::State& state, const Session::Watch& watch = testing::patient()) {
    const GroupShape shape{.members = count(), .replicas = replicas(), .rounded = false};
    auto controls = testing::wire_groups(shape, 0);
    const std::string id = member(0).group().make_link_id();
    run_members(count(), [&](int i) {
      member(i).join(std::move(controls[static_cast<size_t>(i)]), shape, i, id, state, watch);
    });
  }
  // The state that members have after so many steps.
  static Reference::State after(const Reference& reference, uint64_t steps) {
    Reference::State state = reference.initial(kFirstStep);
    for (uint64_t i = 0; i < steps; ++i) reference.advance(state);
    return state;
  }

  // All make `before` steps, and all but the last member begin another; then that one does what
  // ends it.
  void miss_one(const Reference& reference, uint64_t before, const std::function<void()>& end,
                Outcome expected, const Session::Watch& watch) {
    const int last = count() - 1;
    std::atomic<int> waiting{0};
    run_members(count(), [&](int i) {
      for (uint64_t step = kFirstStep; step < kFirstStep + before; ++step)
        ASSERT_EQ(member(i).step(reference, step, watch).outcome, Outcome::ok);
      if (i == last) {
        while (waiting < last) std::this_thread::yield();
        return end();
      }
      ++waiting;
      EXPECT_EQ(member(i).step(reference, kFirstStep + before, watch).outcome, expected);
      EXPECT_EQ(member(i).session().settle().step, kFirstStep + before);
    });
  }

  // The members that are left have the state of the last step that was made, and go on from it.
  void expect_to_go_on(const Reference& reference, uint64_t before) {
    const Reference::State state = after(reference, before);
    for (int i = 0; i + 1 < count(); ++i)
      EXPECT_TRUE(testing::copy_of(member(i).session(), reference, state.step) == state);
    join(state);
    const Reference::State expected = after(reference, before + 2);
    run_members(count(), [&](int i) {
      for (uint64_t step = state.step; step < expected.step; ++step)
        ASSERT_EQ(member(i).step(reference, step, testing::patient()).outcome, Outcome::ok);
      EXPECT_TRUE(testing::copy_of(member(i).session(), reference, expected.step) == expected);
    });
  }

 private:
  const compute::OptimizerSpec rule_;
  std::vector<std::unique_ptr<Member>> members_;
};

TEST_P(DeviceSessionTest, HasTheBitsOfOneProcess) {
  const Reference reference = this->reference();
  join(reference.initial(kFirstStep));
  const Reference::State expected = after(reference, 20);
  run_members(count(), [&](int i) {
    for (uint64_t step = kFirstStep; step < expected.step; ++step) {
      const auto made = member(i).step(reference, step, testing::patient());
      ASSERT_EQ(made.outcome, Outcome::ok);
      ASSERT_TRUE(made.sums == reference.sums(step)) << "of step " << step;
    }
    EXPECT_TRUE(testing::copy_of(member(i).session(), reference, expected.step) == expected);
  });
  for (int i = 0; i < count(); ++i) {
    EXPECT_EQ(member(i).session().settle().step, expected.step);
    EXPECT_EQ(member(i).session().settle().step, expected.step);
    EXPECT_TRUE(testing::copy_of(member(i).session(), reference, expected.step) == expected);
  }
}

// It leaves without a word, as a process that is killed does.
TEST_P(DeviceSessionTest, ThoseThatAreLeftComeBackWhenAPeerIsGone) {
  const Reference reference = this->reference();
  for (const uint64_t before : {0, 3}) {
    join(reference.initial(kFirstStep));
    miss_one(
        reference, before, [&] { member(count() - 1).leave(); }, Outcome::over, testing::patient());
    expect_to_go_on(reference, before);
  }
}

TEST_P(DeviceSessionTest, WhoMissesAMemberComesBackWhenTheGenerationIsOver) {
  const Reference reference = this->reference();
  std::atomic<bool> over{false};
  const Session::Watch watch{{}, [&] { return over.load(); }};
  join(reference.initial(kFirstStep), watch);
  miss_one(
      reference, 2, [&] { over = true; }, Outcome::over, watch);
  expect_to_go_on(reference, 2);
}

TEST_P(DeviceSessionTest, WhoMissesAMemberComesBackWhenAskedToStop) {
  const Reference reference = this->reference();
  std::stop_source stop;
  const Session::Watch watch{stop.get_token(), [] { return false; }};
  join(reference.initial(kFirstStep), watch);
  miss_one(
      reference, 2, [&] { stop.request_stop(); }, Outcome::interrupted, watch);
  expect_to_go_on(reference, 2);
}

// The comparison covers the parameters and each slot, on each device.
TEST_P(DeviceSessionTest, WhoHoldsAnotherStateIsFoundOut) {
  const Reference reference = this->reference();
  for (size_t buffer = 0; buffer < 3; ++buffer) {
    join(reference.initial(kFirstStep));
    run_members(count(), [&](int i) {
      const auto make = [&](uint64_t step, bool compare) {
        return member(i).step(reference, kFirstStep + step, testing::patient(), compare && i == 0);
      };
      EXPECT_FALSE(make(0, false).compared);
      EXPECT_TRUE(make(1, true).compared);
      if (i == count() - 1) {
        const int device = member(i).devices() - 1;
        compute::Memory& memory = *member(i).group().state_of(device)[buffer];
        float one = 0;
        memory.read({100, 101}, {&one, 1}).wait();
        reinterpret_cast<uint32_t&>(one) ^= 1 << 18;
        memory.write({100, 101}, {&one, 1}).wait();
      }
      const auto made = make(2, true);
      EXPECT_EQ(made.outcome, Outcome::differs);
      EXPECT_FALSE(made.odd.empty());
      member(i).session().settle();
    });
  }
}

INSTANTIATE_TEST_SUITE_P(MembersAndDevices, DeviceSessionTest,
                         ::testing::Values(std::tuple(2, 1), std::tuple(3, 1), std::tuple(2, 2)),
                         [](const auto& info) {
                           return std::to_string(std::get<0>(info.param)) + "x" +
                                  std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace muster::collective
