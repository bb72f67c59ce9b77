#include "trainer/ps/shard/gpu_update.h"

#include <gtest/gtest.h>

#include <deque>
#include <optional>

#include "common/error.h"
#include "tests/unit/trainer/compute/cuda/simulated_gpu.h"
#include "tests/unit/trainer/extended.h"
#include "tests/unit/trainer/ps/shard/update_inputs.h"
#include "trainer/compute/cuda/gpus.h"
#include "trainer/host/instruction_set.h"
#include "trainer/ps/shard/block_update.h"

namespace muster::ps {
namespace {

using compute::Floats;
using compute::Range;
using compute::testing::ThreadOrder;

compute::ParameterLayout tensors_of_test() {
  std::vector<compute::ParameterTensor> tensors(3);
  const char* names[] = {"kernel", "bias", "frozen"};
  const std::vector<int64_t> shapes[] = {{90, 70}, {70}, {21}};
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].name = names[i];
    tensors[i].shape = shapes[i];
  }
  tensors[0].regularized = true;
  tensors[2].segment = compute::Segment::frozen;
  return compute::ParameterLayout(tensors);
}

// Two steps of a shard lead to these parameters and slots, and a member has got these parameters.
struct Result {
  Floats parameters, delivered;
  std::vector<Floats> slots;
  bool operator==(const Result&) const = default;
};

struct Setting {
  const compute::Optimizer& optimizer;
  Range range;
  int members;
  bool sum_first;  // as for a second copy
};

// `gpu`: gradients and copies lie in its memory.
Result run(ShardUpdate& update, const Setting& setting, compute::cuda::Gpu* gpu) {
  const size_t size = setting.range.size();
  const auto count = static_cast<int64_t>(size);
  const auto numbers = [&](double pace, compute::FloatMemory* memory) {
    return wave(setting.optimizer.layout(), setting.range, pace, memory);
  };
  Floats from = numbers(1.7, update.memory().get()), to = numbers(0, update.memory().get());
  Floats sum = numbers(0, update.memory().get());
  std::vector<Floats> slots;
  for (size_t i = 0; i < setting.optimizer.slot_names().size(); ++i)
    slots.push_back(numbers(0, update.memory().get()));
  Floats delivered(size);
  std::optional<compute::cuda::GpuArray<float>> far_delivered;
  if (gpu) far_delivered.emplace(*gpu, count);
  for (uint64_t t = 1; t <= 2; ++t) {
    std::deque<Floats> near;
    std::deque<compute::cuda::GpuArray<float>> far;
    std::vector<compute::ConstPlacedFloats> gradients;
    for (int member = 0; member < setting.members; ++member) {
      near.push_back(numbers(0.3 * (member + 1) * static_cast<double>(t), nullptr));
      gradients.emplace_back(near.back());
      if (!gpu) continue;
      far.emplace_back(*gpu, count);
      gpu->put(far.back().data(), near.back().data(), size * sizeof(float)).wait();
      gradients.back() = {compute::Place::gpu, far.back().data(), size};
    }
    const std::vector<std::span<const float>> slots_from(slots.begin(), slots.end());
    const std::vector<std::span<float>> slots_to(slots.begin(), slots.end());
    const compute::PlacedFloats copy =
        gpu ? compute::PlacedFloats(compute::Place::gpu, far_delivered->data(), size) : delivered;
    ShardUpdate::Buffers buffers;
    buffers.from = from;
    buffers.to = to;
    buffers.gradients = gradients;
    buffers.slots_from = slots_from;
    buffers.slots = slots_to;
    buffers.copies = {&copy, 1};
    if (setting.sum_first) {
      update.sum(gradients, sum, true);
      buffers.sum = sum;
    }
    update.run(setting.range, arguments(t), buffers, true);
    std::swap(from, to);
  }
  if (gpu) gpu->fetch(delivered.data(), far_delivered->data(), size * sizeof(float)).wait();
  return {from, delivered, slots};
}

struct Kind {
  const char* name;
  std::optional<ThreadOrder> simulated;  // none: a GPU
};

class GpuUpdateTest : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (!GetParam().simulated && compute::cuda::gpu_count() == 0)
      GTEST_SKIP() << "this machine has no GPU that can be used";
    gpu_ = GetParam().simulated ? compute::testing::make_simulated_gpu(*GetParam().simulated)
                                : compute::cuda::open_gpu(0);
    memory_ = std::make_shared<GpuFloats>(gpu_);
  }
  std::shared_ptr<compute::cuda::Gpu> gpu_;
  std::shared_ptr<GpuFloats> memory_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, GpuUpdateTest,
                         testing::Values(Kind{"ascending", ThreadOrder::ascending},
                                         Kind{"descending", ThreadOrder::descending},
                                         Kind{"Gpu", std::nullopt}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(GpuUpdateTest, HasTheBitsOfTheCpu) {
  if (!host::fuses()) GTEST_SKIP() << "this CPU does not fuse multiply and add, as a GPU does";
  const compute::ParameterLayout layout = tensors_of_test();
  for (const compute::OptimizerSpec& spec :
       {compute::OptimizerSpec{compute::Sgd{0.9f, true}}, compute::OptimizerSpec{compute::AdamW{}},
        compute::OptimizerSpec{compute::Lamb{}}, extended(compute::RmsProp{})}) {
    const auto optimizer = compute::Optimizer::create(spec, layout);
    for (const Range range : shard_ranges(spec, layout, 2))
      for (const int members : {1, 2, 3, 7, 8})
        for (const bool rounded : {false, true})
          for (const bool sum_first : {false, true}) {
            const Setting setting{*optimizer, range, members, sum_first};
            BlockUpdate on_cpu(*optimizer, 1, rounded);
            GpuUpdate on_gpu(*gpu_, memory_, *optimizer, range, rounded);
            const Result expected = run(on_cpu, setting, nullptr);
            EXPECT_EQ(run(on_gpu, setting, gpu_.get()), expected)
                << "optimizer " << spec.kind.index() << ", floats from " << range.begin << ", "
                << members << " members, rounded " << rounded << ", sum first " << sum_first;
          }
  }
}

TEST_P(GpuUpdateTest, RefusesAPartOfATensorThatIsNeededWhole) {
  const compute::ParameterLayout layout = tensors_of_test();
  const auto optimizer = compute::Optimizer::create(compute::Lamb{}, layout);
  EXPECT_THROW(GpuUpdate(*gpu_, memory_, *optimizer, {16, layout.size()}, false), Invalid);
}

TEST_P(GpuUpdateTest, KeepsGradientsWhoseMemoryGoes) {
  const compute::ParameterLayout layout = tensors_of_test();
  const auto optimizer = compute::Optimizer::create(compute::Sgd{}, layout);
  GpuUpdate update(*gpu_, memory_, *optimizer, {0, layout.size()}, false);
  const Floats sent = wave(layout, {0, layout.size()}, 0.3);
  Floats kept = wave(layout, {0, layout.size()}, 0, update.memory().get());
  {
    const compute::cuda::GpuArray<float> gradients(*gpu_, static_cast<int64_t>(sent.size()));
    gpu_->put(gradients.data(), sent.data(), sent.size() * sizeof(float)).wait();
    update.keep({gradients.data(), sent.size()}, kept);
  }
  EXPECT_EQ(kept, sent);
}

}  // namespace
}  // namespace muster::ps
