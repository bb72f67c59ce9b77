#include "trainer/compute/cuda/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "common/exit_code.h"
#include "tests/unit/trainer/compute/cuda/simulated_gpu.h"
#include "tests/unit/trainer/compute/support.h"

namespace muster::compute::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::unique_ptr<Engine> engine_on(std::unique_ptr<cuda::Gpu> gpu, const ModelSpec& spec,
                                  int64_t max_rows) {
  EngineOptions options;
  options.device = {DeviceKind::cuda, 0};
  options.max_rows = max_rows;
  return std::make_unique<cuda::CudaEngine>(build_graph(spec), options, std::move(gpu));
}

// Every kind of layer that has kernels of its own.
ModelSpec images() {
  Conv2d convolution;
  convolution.filters = 6;
  convolution.window = {{3, 3}, {2, 2}, Padding::same};
  DepthwiseConv2d depthwise;
  depthwise.window = {{3, 3}, {1, 1}, Padding::same};
  depthwise.activation = Activation::relu6;
  ModelSpec spec =
      model(1,
            {layer("a", convolution), layer("n", BatchNormalization{}), layer("d", depthwise),
             layer("m", MaxPool{{{2, 2}, {1, 1}, Padding::same}}),
             layer("p", AveragePool{{{2, 2}, {2, 2}, Padding::same}}), layer("x", Dropout{0.3f}),
             dense("s", 300, Activation::softmax), dense("y", 5, Activation::linear)},
            5);
  spec.input_shape = {9, 8, 3};
  return spec;
}

// Threads of a GPU run in any order.
TEST(CudaEngine, ComputesTheSameInAnyOrderOfTheThreads) {
  OptimizerSpec clipped = Adam{};
  clipped.clip_norm = 0.1f;
  for (const OptimizerSpec& rule : {OptimizerSpec{RmsProp{}}, clipped, OptimizerSpec{Lamb{}}}) {
    std::vector<std::vector<float>> trained;
    for (const ThreadOrder order : {ThreadOrder::ascending, ThreadOrder::descending}) {
      const OwnedBatch batch(7, 9 * 8 * 3, 5);
      const auto made = engine_on(make_simulated_gpu(order), images(), 7);
      initialize(*made);
      const auto optimizer = Optimizer::create(rule, made->layout());
      const auto storage = allocate_slots(*made, *optimizer);
      std::vector<Memory*> slots;
      for (const auto& slot : storage) slots.push_back(slot.get());
      UpdateArguments update;
      for (update.t = 1; update.t <= 3; ++update.t)
        made->train(batch.all(), *optimizer, update, slots);
      trained.push_back(values(made->parameters()));
    }
    EXPECT_EQ(trained[0], trained[1]);
  }
}

// More forms of a batch than recordings are kept.
TEST(CudaEngine, TakesBatchesOfManyForms) {
  const OwnedBatch batch(12, 23, 5);
  const auto cuda = engine(Backend::simulated_gpu, two_branches(), 12);
  const auto cpu = engine(Backend::cpu, two_branches(), 12);
  initialize(*cuda);
  initialize(*cpu);
  for (int round = 0; round < 2; ++round) {
    for (int64_t rows = 1; rows <= 12; ++rows) {
      const double expected = cpu->compute_gradients(batch.first(rows)).loss;
      EXPECT_NEAR(cuda->compute_gradients(batch.first(rows)).loss, expected, 1e-5 * expected);
    }
  }
}

TEST(CudaEngine, TakesBytes) {
  std::vector<uint8_t> pixels(2 * 23);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 5);
  const std::vector<const void*> rows{pixels.data(), pixels.data() + 23};
  const std::vector<int32_t> labels{3, 1};
  Batch batch;
  batch.rows = 2;
  batch.type = ElementType::uint8;
  batch.features = rows;
  batch.labels = labels;
  batch.scale = 1.0f / 255;
  batch.offset = -0.5f;
  std::vector<std::vector<float>> outputs;
  for (const Backend backend : {Backend::cpu, Backend::simulated_gpu}) {
    const auto made = engine(backend, two_branches(), 2);
    initialize(*made);
    outputs.emplace_back(10);
    made->predict(batch, outputs.back());
  }
  EXPECT_THAT(outputs[1], ::testing::Pointwise(::testing::FloatNear(1e-5f), outputs[0]));
}

TEST(CudaEngine, RefusesMemoryOfAnotherGpu) {
  const auto one = engine(Backend::simulated_gpu, two_branches(), 2);
  const auto other = engine(Backend::simulated_gpu, two_branches(), 2);
  HostMemory host(one->layout().size());
  EXPECT_THAT([&] { one->use(other->parameters(), nullptr); },
              ThrowsMessage<Invalid>(HasSubstr("in the memory of cuda:0")));
  EXPECT_THAT([&] { one->use(host, nullptr); },
              ThrowsMessage<Invalid>(HasSubstr("in the memory of cuda:0")));
}

}  // namespace
}  // namespace muster::compute::testing
