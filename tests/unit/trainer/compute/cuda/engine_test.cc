#include "trainer/compute/cuda/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "common/exit_code.h"
#include "tests/unit/trainer/compute/cuda/simulated_gpu.h"
#include "tests/unit/trainer/compute/support.h"
#include "trainer/compute/cuda/rounded_matrices.h"

namespace muster::compute::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct Numbers {
  Precision precision = Precision::float32;
  cuda::CudaEngine::Limits limits = {};
};

std::unique_ptr<Engine> engine_on(std::unique_ptr<cuda::Gpu> gpu, const ModelSpec& spec,
                                  int64_t max_rows, const Numbers& numbers = {}) {
  EngineOptions options;
  options.device = {DeviceKind::cuda, 0};
  options.max_rows = max_rows;
  options.precision = numbers.precision;
  return std::make_unique<cuda::CudaEngine>(build_graph(spec), options, std::move(gpu),
                                            numbers.limits);
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

// Convolutions whose outputs are normalized values, of single places and of windows.
ModelSpec normalized_images() {
  Conv2d wide;
  wide.filters = 6;
  wide.window = {{3, 3}, {2, 2}, Padding::same};
  wide.use_bias = false;
  DepthwiseConv2d depthwise;
  depthwise.window = {{3, 3}, {1, 1}, Padding::same};
  depthwise.use_bias = false;
  Conv2d narrow;
  narrow.filters = 7;
  narrow.use_bias = false;
  ModelSpec spec =
      model(1,
            {layer("a", wide), layer("a_n", BatchNormalization{}),
             layer("a_r", ActivationLayer{Activation::relu6}), layer("d", depthwise),
             layer("d_n", BatchNormalization{}), layer("d_r", ActivationLayer{Activation::relu6}),
             layer("b", narrow), layer("b_n", BatchNormalization{}), layer("c", wide),
             layer("p", GlobalAveragePool{}), dense("y", 5, Activation::linear)},
            5);
  spec.input_shape = {9, 8, 3};
  return spec;
}

// Returns the parameters after three steps.
std::vector<float> trained(Engine& engine, const OptimizerSpec& rule) {
  const OwnedBatch batch(7, 9 * 8 * 3, 5);
  initialize(engine);
  const auto optimizer = Optimizer::create(rule, engine.layout());
  const auto storage = allocate_slots(engine, *optimizer);
  std::vector<Memory*> slots;
  for (const auto& slot : storage) slots.push_back(slot.get());
  UpdateArguments update;
  for (update.t = 1; update.t <= 3; ++update.t)
    engine.train(batch.all(), *optimizer, update, slots);
  return values(engine.parameters());
}

// It does so whether the data are on the GPU or are brought, and with a batch that has no rows.
TEST(CudaEngine, TrainsAheadToTheSameBits) {
  const OwnedBatch batch(7, 9 * 8 * 3, 5);
  const auto run = [&](bool ahead, bool there) {
    const auto made = engine_on(make_simulated_gpu(), images(), 7);
    initialize(*made);
    std::shared_ptr<void> served;
    if (there) served = made->serve(std::as_bytes(std::span(batch.values)), Content::constant);
    const auto optimizer = Optimizer::create(Adam{}, made->layout());
    EXPECT_TRUE(made->trains_ahead(*optimizer));
    EXPECT_FALSE(made->trains_ahead(*Optimizer::create(Lamb{}, made->layout())));
    const auto storage = allocate_slots(*made, *optimizer);
    std::vector<Memory*> slots;
    for (const auto& slot : storage) slots.push_back(slot.get());
    std::vector<double> losses;
    UpdateArguments update;
    const auto end = [&] { losses.push_back(made->end_training().loss); };
    for (update.t = 1; update.t <= 6; ++update.t) {
      const int64_t rows = update.t == 4 ? 0 : 8 - static_cast<int64_t>(update.t);
      made->begin_training(batch.first(rows), *optimizer, update, slots);
      if (!ahead || update.t > 1) end();
    }
    if (ahead) end();
    EXPECT_EQ(losses.size(), 6u);
    EXPECT_EQ(losses[3], 0);
    return std::pair(losses, values(made->parameters()));
  };
  const auto expected = run(false, false);
  for (const bool there : {true, false}) EXPECT_EQ(run(true, there), expected) << there;
}

// Threads of a GPU run in any order.
TEST(CudaEngine, ComputesTheSameInAnyOrderOfTheThreads) {
  OptimizerSpec clipped = Adam{};
  clipped.clip_norm = 0.1f;
  const auto same = [](const ModelSpec& spec, const OptimizerSpec& rule, Precision precision) {
    std::vector<std::vector<float>> found;
    for (const ThreadOrder order : {ThreadOrder::ascending, ThreadOrder::descending})
      found.push_back(trained(*engine_on(make_simulated_gpu(order), spec, 7, {precision}), rule));
    EXPECT_EQ(found[0], found[1]);
  };
  for (const OptimizerSpec& rule : {OptimizerSpec{RmsProp{}}, clipped, OptimizerSpec{Lamb{}}})
    same(images(), rule, Precision::float32);
  for (const Precision precision : {Precision::float32, Precision::bfloat16})
    same(normalized_images(), RmsProp{}, precision);
}

// The patches of all 7 samples do not fit: 3, 3 and 1 are done at once, or one at a time.
TEST(CudaEngine, TakesConvolutionsInParts) {
  for (const ModelSpec& spec : {images(), normalized_images()}) {
    const auto whole = engine_on(make_simulated_gpu(), spec, 7);
    const std::vector<float> expected = trained(*whole, Sgd{});
    for (const int64_t most : {3 * 5 * 4 * 27 + 5, 1}) {
      const auto parts =
          engine_on(make_simulated_gpu(), spec, 7, {Precision::float32, {.patches = most}});
      EXPECT_THAT(trained(*parts, Sgd{}),
                  ::testing::Pointwise(::testing::FloatNear(1e-5f), expected));
    }
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

TEST(CudaEngine, RefusesArraysThatKernelsCannotIndex) {
  EXPECT_THAT([] { engine_on(make_simulated_gpu(), images(), 10'000'000); },
              ThrowsMessage<Invalid>(HasSubstr("a smaller training.batchSize has fewer")));
}

// The step itself is not lost: its gradients are there.
TEST(CudaEngine, GoesOnWhereLookingAheadHasFailed) {
  const OwnedBatch batch(7, 9 * 8 * 3, 5);
  const auto told = engine_on(make_simulated_gpu(), images(), 7);
  const auto untold = engine_on(make_simulated_gpu(), images(), 7);
  initialize(*told);
  initialize(*untold);
  untold->compute_gradients(batch.all());
  told->set_meanwhile([] { throw Invalid("no batch"); });
  for (const Engine::OnComplete& on_complete :
       {Engine::OnComplete{}, Engine::OnComplete{[](size_t) {}}}) {
    EXPECT_THAT([&] { told->compute_gradients(batch.all(), on_complete); },
                ThrowsMessage<Invalid>("no batch"));
    EXPECT_EQ(values(told->gradients()), values(untold->gradients()));
  }
}

TEST(CudaEngine, RefusesToBeginTooManySteps) {
  const OwnedBatch batch(2, 9 * 8 * 3, 5);
  const auto made = engine_on(make_simulated_gpu(), images(), 2);
  initialize(*made);
  const auto optimizer = Optimizer::create(Sgd{}, made->layout());
  UpdateArguments update;
  for (int step = 0; step < Engine::kMostAhead; ++step)
    made->begin_training(batch.all(), *optimizer, update, {});
  EXPECT_THROW(made->begin_training(batch.all(), *optimizer, update, {}), std::logic_error);
}

// A product reads whole padded rows: of what follows a matrix it must read zeros.
TEST(RoundedMatrices, ArePaddedWithZeros) {
  const auto gpu = make_simulated_gpu();
  cuda::RoundedMatrices matrices(*gpu);
  const std::vector<float> ones(27 * 64 + 5 * 8, 1.0f);
  const int64_t first = matrices.add(0, 27, 60, 32, 64);
  const int64_t second = matrices.add(27 * 60, 5, 8, 8, 8);
  EXPECT_GE(second - first, 32 * 64);
  matrices.allocate();
  const cuda::GpuArray<float> parameters(*gpu, static_cast<int64_t>(ones.size()));
  gpu->upload(parameters.data(), ones.data(), ones.size() * sizeof(float));
  matrices.write(parameters.data());
  std::vector<uint16_t> found(32 * 64);
  gpu->download(found.data(), matrices.at(first).data(), found.size() * sizeof(uint16_t));
  gpu->wait();
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_EQ(found[i], i / 64 < 27 && i % 64 < 60 ? 0x3F80 : 0) << i;
}

TEST(CudaEngine, PinsMemoryUntilTheResultEnds) {
  const auto made = engine_on(make_simulated_gpu(), images(), 7);
  std::vector<std::byte> memory(16);
  auto pinned = made->pin(memory);
  EXPECT_NE(pinned, nullptr);
  EXPECT_EQ(made->pin(memory), nullptr);
  pinned.reset();
  EXPECT_NE(made->pin(memory), nullptr);
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
