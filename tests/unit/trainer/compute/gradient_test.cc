#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/trainer/compute/support.h"

namespace muster::compute::testing {
namespace {

struct Case {
  std::string name;
  ModelSpec spec;
  int64_t max_rows;
  int64_t rows;
  double density = 1.0;
};

std::vector<Case> cases() {
  const auto mse = MeanSquaredError{};
  const auto relu = Activation::relu, sigmoid = Activation::sigmoid, linear = Activation::linear;
  const auto softmax = Activation::softmax;
  return {
      {"one_unit", model(1, {dense("y", 1, linear)}, 1, mse), 4, 3},
      {"relu", model(17, {dense("a", 100, relu), dense("b", 3, linear)}, 3), 33, 33},
      {"wide",
       model(100, {dense("a", 257, relu), dense("b", 65, relu), dense("c", 17, linear)}, 17), 32,
       7},
      {"sparse", model(100, {dense("a", 257, relu), dense("b", 10, linear)}, 10), 40, 40, 0.2},
      {"sigmoid", model(19, {dense("a", 33, sigmoid), dense("b", 5, sigmoid)}, 5, mse), 16, 5},
      {"huber", model(19, {dense("a", 33, sigmoid), dense("b", 5, linear)}, 5, Huber{0.4f}), 16,
       11},
      {"softmax_end", model(9, {dense("a", 12, relu), dense("b", 4, softmax)}, 4), 8, 8},
      {"softmax_inside", model(9, {dense("a", 21, softmax), dense("b", 4, softmax)}, 4, mse), 8, 8},
      {"activation_layers",
       model(9,
             {dense("a", 18, linear), layer("s", ActivationLayer{sigmoid}), dense("b", 3, linear),
              layer("p", ActivationLayer{softmax})},
             3),
       8, 6},
      {"no_bias",
       [&] {
         ModelSpec spec = model(9, {dense("a", 18, relu), dense("b", 3, linear)}, 3);
         std::get<Dense>(spec.layers[0].kind).use_bias = false;
         return spec;
       }(),
       8, 6},
      {"normalized",
       model(9, {dense("a", 37, relu), layer("n", BatchNormalization{}), dense("b", 3, linear)}, 3),
       12, 11},
      {"same_twice",
       model(9, {dense("a", 37, relu), layer("sum", Add{}, {"a", "a"}), dense("b", 3, linear)}, 3),
       12, 11},
      {"branches", two_branches(), 32, 32},
      {"branches_remainder", two_branches(), 32, 9},
  };
}

class Gradient : public ::testing::TestWithParam<std::tuple<std::string, int>> {};

// Compares with central differences of the float64 reference, at some seven places of each tensor.
void compare(const ModelSpec& spec, cpu::CpuEngine& engine, const Batch& batch) {
  std::vector<double> parameters = to_double(values(engine.parameters()));
  const double expected = reference_loss(spec, engine.layout(), parameters, batch, true);
  const LossSums sums = engine.compute_gradients(batch);
  EXPECT_NEAR(sums.loss, expected, 1e-5 * std::abs(expected) + 1e-6);
  EXPECT_EQ(sums.rows, batch.rows);
  const std::vector<float> gradients = values(engine.gradients());
  for (const ParameterTensor& tensor : engine.layout().tensors()) {
    if (tensor.segment != Segment::trainable) continue;
    const size_t step = std::max<size_t>(1, tensor.count / 7);
    for (size_t i = 0; i < tensor.count; i += step) {
      const size_t at = tensor.offset + i;
      const double kept = parameters[at], h = 1e-5;
      parameters[at] = kept + h;
      const double above = reference_loss(spec, engine.layout(), parameters, batch, true);
      parameters[at] = kept - h;
      const double below = reference_loss(spec, engine.layout(), parameters, batch, true);
      parameters[at] = kept;
      const double slope = (above - below) / (2 * h);
      ASSERT_NEAR(gradients[at], slope, 2e-4 * std::abs(slope) + 3e-5)
          << tensor.name << " [" << i << "]";
    }
  }
}

TEST_P(Gradient, EqualsTheSlopeOfTheFloat64Reference) {
  const auto& [set, threads] = GetParam();
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const OwnedBatch batch(c.rows, c.spec.input_shape[0], c.spec.label_count, c.density);
    for (auto sparsity : {cpu::CpuEngine::Sparsity::never, cpu::CpuEngine::Sparsity::always}) {
      auto made = cpu_engine(c.spec, c.max_rows, threads, set);
      initialize(*made);
      made->set_sparsity(sparsity);
      compare(c.spec, *made, batch.all());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EverySet, Gradient,
                         ::testing::Combine(::testing::ValuesIn(instruction_sets()),
                                            ::testing::Values(1, 2, 3)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" +
                                  std::to_string(std::get<1>(info.param)) + "_threads";
                         });

}  // namespace
}  // namespace muster::compute::testing
