#include "trainer/compute/cuda/kernels/dense.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/trainer/compute/cuda/simulated_gpu.h"
#include "tests/unit/trainer/compute/support.h"
#include "trainer/compute/cuda/engine.h"

namespace muster::compute::testing {
namespace {

constexpr Activation kActivations[] = {Activation::linear, Activation::relu, Activation::sigmoid,
                                       Activation::relu6};

struct Case {
  int64_t features, units;
  Activation activation;
  bool bias;
  bool two_readers;  // of the layer's input, so that its gradient is added to another one's
  bool trainable;
};

std::string to_string(const Case& c) {
  return std::to_string(c.features) + " features, " + std::to_string(c.units) + " units, " +
         "activation " + std::to_string(static_cast<int>(c.activation)) + (c.bias ? ", bias" : "") +
         (c.two_readers ? ", two readers" : "") + (c.trainable ? "" : ", frozen");
}

// The layer "b" of the case, behind one whose gradients are those of b's input.
ModelSpec network(const Case& c) {
  Dense kind;
  kind.units = c.units;
  kind.activation = c.activation;
  kind.use_bias = c.bias;
  std::vector<LayerSpec> layers{dense("a", c.features, Activation::linear, {"input"}),
                                layer("b", kind, {"a"}, c.trainable)};
  if (c.two_readers) {
    layers.push_back(dense("other", c.units, Activation::sigmoid, {"a"}));
    layers.push_back(layer("sum", Add{}, {"b", "other"}));
  }
  const LossKind loss = c.units > 1 ? LossKind{SoftmaxCrossEntropy{}} : LossKind{Huber{}};
  return model(5, layers, c.units, loss);
}

std::unique_ptr<Engine> engine_in(ThreadOrder order, const ModelSpec& spec, int64_t rows) {
  EngineOptions options;
  options.device = {DeviceKind::cuda, 0};
  options.max_rows = rows;
  return std::make_unique<cuda::CudaEngine>(build_graph(spec), options, make_simulated_gpu(order));
}

// Returns the loss, the outputs and the gradients.
std::vector<float> computed(Engine& engine, const Batch& batch) {
  initialize(engine);
  std::vector<float> all(static_cast<size_t>(batch.rows * engine.output_count()));
  all.push_back(static_cast<float>(engine.evaluate(batch, all).loss));
  engine.compute_gradients(batch);
  const std::vector<float> gradients = values(engine.gradients());
  all.insert(all.end(), gradients.begin(), gradients.end());
  return all;
}

void expect_as_on_the_cpu(const Case& c, int64_t rows) {
  SCOPED_TRACE(to_string(c) + ", " + std::to_string(rows) + " rows");
  const ModelSpec spec = network(c);
  const OwnedBatch batch(rows, 5, c.units);
  const auto found = computed(*engine_in(ThreadOrder::ascending, spec, rows), batch.all());
  EXPECT_EQ(found, computed(*engine_in(ThreadOrder::descending, spec, rows), batch.all()));
  const auto expected = computed(*cpu_engine(spec, rows), batch.all());
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], 1e-5f * (1 + std::abs(expected[i]))) << i;
}

TEST(CudaDense, ComputesWhatTheCpuDoesForAnyShape) {
  int number = 0;
  for (const int64_t rows : {1, 3, 32, 33, 64, 65}) {
    for (const int64_t features : {1, 7, 784}) {
      for (const int64_t units : {1, 10, 256, 257}) {
        const int n = number++;
        expect_as_on_the_cpu({features, units, kActivations[n % 4], n % 3 != 0, n % 2 == 0, true},
                             rows);
      }
    }
  }
}

TEST(CudaDense, ComputesWhatTheCpuDoesForAnyLayer) {
  for (const Activation activation : kActivations)
    for (const bool bias : {false, true})
      for (const bool two_readers : {false, true})
        for (const bool trainable : {false, true})
          for (const int64_t units : {9, 64})
            expect_as_on_the_cpu({36, units, activation, bias, two_readers, trainable}, 12);
}

TEST(CudaDense, LeavesWideLayersAndManyRowsToProducts) {
  EXPECT_TRUE(cuda::is_small_dense(32, 784, 256));
  EXPECT_TRUE(cuda::is_small_dense(64, 1, 256));
  EXPECT_FALSE(cuda::is_small_dense(65, 1, 256));
  EXPECT_FALSE(cuda::is_small_dense(32, 4096, 4096));
  EXPECT_FALSE(cuda::is_small_dense(1, 2, int64_t{1} << 21));
}

}  // namespace
}  // namespace muster::compute::testing
