#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "common/error.h"
#include "common/exit_code.h"
#include "tests/unit/trainer/compute/support.h"
#include "trainer/compute/layers/layer.h"

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
      {"binary_cross_entropy",
       model(19, {dense("a", 33, sigmoid), dense("b", 5, linear)}, 5, BinaryCrossEntropy{2.5f}), 16,
       11},
      {"poisson", model(19, {dense("a", 33, sigmoid), dense("b", 5, linear)}, 5, Poisson{}), 16,
       11},
      {"quantile", model(19, {dense("a", 33, sigmoid), dense("b", 5, linear)}, 5, Quantile{{0.8f}}),
       16, 11},
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

ModelSpec image_model(std::vector<int64_t> shape, std::vector<LayerSpec> layers, int64_t labels) {
  ModelSpec spec = model(1, std::move(layers), labels);
  spec.input_shape = std::move(shape);
  return spec;
}

Conv2d convolution(int64_t filters, Window window, Activation activation, bool use_bias = true) {
  Conv2d layer;
  layer.filters = filters;
  layer.window = window;
  layer.activation = activation;
  layer.use_bias = use_bias;
  return layer;
}

DepthwiseConv2d depthwise(Window window, Activation activation, bool use_bias = true) {
  DepthwiseConv2d layer;
  layer.window = window;
  layer.activation = activation;
  layer.use_bias = use_bias;
  return layer;
}

std::vector<Case> image_cases() {
  const auto relu6 = Activation::relu6, sigmoid = Activation::sigmoid, linear = Activation::linear;
  const Window three{{3, 3}, {1, 1}, Padding::same}, two{{3, 3}, {2, 2}, Padding::same};
  const Window valid{{3, 3}, {1, 1}, Padding::valid};
  return {
      {"convolutions",
       image_model(
           {7, 9},
           {layer("a", convolution(5, valid, sigmoid)), layer("b", convolution(17, two, sigmoid)),
            layer("c", convolution(3, {{1, 1}, {1, 1}, Padding::valid}, relu6, false)),
            dense("y", 4, linear)},
           4),
       6, 5},
      {"odd_windows",
       image_model({11, 6, 3},
                   {layer("a", convolution(4, {{2, 5}, {3, 1}, Padding::same}, sigmoid)),
                    layer("b", convolution(6, {{4, 2}, {1, 2}, Padding::same}, linear, false)),
                    layer("p", AveragePool{{{3, 2}, {2, 1}, Padding::same}}), layer("f", Flatten{}),
                    dense("y", 3, linear)},
                   3),
       4, 4},
      // Winograd's convolution: images of odd and even sizes, an input that two layers read, inputs
      // that need no gradient, a layer that is not trained, and an image that is wider than the
      // tiles that are taken at once.
      {"winograd",
       image_model({12, 11, 2},
                   {layer("a", convolution(17, three, sigmoid)),
                    layer("b", convolution(19, three, sigmoid), {"a"}),
                    layer("c", convolution(16, valid, linear, false), {"b"}),
                    layer("d", convolution(16, valid, sigmoid), {"a"}, false),
                    layer("sum", Add{}, {"c", "d"}), layer("g", GlobalAveragePool{}),
                    dense("y", 3, linear)},
                   3),
       5, 5},
      {"winograd_even",
       image_model({14, 10, 16},
                   {layer("a", convolution(16, three, sigmoid)),
                    layer("b", convolution(18, valid, sigmoid), {"a"}),
                    layer("c", convolution(18, valid, linear, false), {"a"}),
                    layer("sum", Add{}, {"b", "c"}), layer("g", GlobalAveragePool{}),
                    dense("y", 3, linear)},
                   3),
       5, 5},
      {"winograd_wide",
       image_model({6, 261, 2},
                   {layer("a", convolution(16, three, sigmoid)),
                    layer("b", convolution(16, three, sigmoid)),
                    layer("c", convolution(18, three, sigmoid)), layer("g", GlobalAveragePool{}),
                    dense("y", 3, linear)},
                   3),
       3, 3},
      {"depthwise",
       image_model(
           {8, 8, 2},
           {layer("a", convolution(19, three, linear, false)), layer("n", BatchNormalization{}),
            layer("r", ActivationLayer{sigmoid}), layer("d", depthwise(three, sigmoid)),
            layer("e", depthwise(two, linear, false)), layer("g", GlobalAveragePool{}),
            dense("y", 3, linear)},
           3),
       5, 5},
      {"branches_of_images",
       image_model(
           {6, 6, 2},
           {layer("a", convolution(4, three, sigmoid)),
            layer("b", convolution(4, three, sigmoid), {"a"}),
            layer("d", depthwise(three, sigmoid), {"a"}), layer("sum", Add{}, {"a", "b", "d"}),
            layer("m", MaxPool{{{2, 2}, {2, 2}, Padding::valid}}), layer("v", Reshape{{-1, 4}}),
            layer("h", Reshape{{3, 3, 4}}),
            layer("p", AveragePool{{{2, 2}, {1, 1}, Padding::same}}, {"h"}),
            layer("c", Concatenate{}, {"p", "m"}), dense("y", 3, linear)},
           3),
       7, 6},
      {"one_place",
       image_model({1, 1, 3}, {layer("a", convolution(8, three, sigmoid)), dense("y", 2, linear)},
                   2),
       3, 3},
  };
}

// Convolutions whose outputs are normalized, which the engine computes as one operation: every kind
// of reader, windows of other sizes than 3 x 3, and layers that are not trained.
std::vector<Case> normalized_cases() {
  const auto relu = Activation::relu, relu6 = Activation::relu6, linear = Activation::linear;
  const Window one, three{{3, 3}, {1, 1}, Padding::same}, two{{3, 3}, {2, 2}, Padding::same};
  const Window valid{{3, 3}, {1, 1}, Padding::valid};
  const auto norm = [](const std::string& name) { return layer(name, BatchNormalization{}); };
  const auto rectified = [](const std::string& name, Activation activation) {
    return layer(name, ActivationLayer{activation});
  };
  std::vector<LayerSpec> chain = {layer("a", convolution(20, two, linear, false)),
                                  norm("a_n"),
                                  rectified("a_r", relu6),
                                  layer("b", depthwise(three, linear, false)),
                                  norm("b_n"),
                                  rectified("b_r", relu6),
                                  layer("c", convolution(35, one, linear, false)),
                                  norm("c_n"),
                                  rectified("c_r", relu),
                                  layer("d", depthwise(two, linear, false)),
                                  norm("d_n"),
                                  layer("e", convolution(18, three, linear, false)),
                                  norm("e_n"),
                                  rectified("e_r", relu6),
                                  layer("f", convolution(3, one, linear), {"e_r"}),
                                  layer("g", convolution(4, two, Activation::sigmoid), {"e_r"}),
                                  layer("h", depthwise(three, Activation::sigmoid), {"e_r"}),
                                  layer("f_flat", Flatten{}, {"f"}),
                                  layer("g_flat", Flatten{}, {"g"}),
                                  layer("h_flat", Flatten{}, {"h"}),
                                  layer("all", Concatenate{}, {"f_flat", "g_flat", "h_flat"}),
                                  dense("y", 3, linear)};
  std::vector<LayerSpec> odd = {
      layer("a", convolution(6, {{2, 3}, {1, 1}, Padding::valid}, linear, false)),
      norm("a_n"),
      layer("b", depthwise({{2, 5}, {3, 1}, Padding::same}, linear, false)),
      norm("b_n"),
      rectified("b_r", relu),
      layer("c", convolution(8, {{1, 1}, {2, 2}, Padding::same}, linear, false)),
      norm("c_n"),
      rectified("c_r", relu6),
      layer("d", depthwise({{1, 2}, {2, 3}, Padding::valid}, linear, false)),
      norm("d_n"),
      layer("e", convolution(5, one, linear, false)),
      norm("e_n"),
      rectified("e_r", relu),
      layer("g", GlobalAveragePool{}),
      dense("y", 3, linear)};
  // Whole packs of channels, of which a GPU loads four at once.
  std::vector<LayerSpec> packs = {
      layer("a", convolution(8, three, linear, false)),
      norm("a_n"),
      rectified("a_r", relu6),
      layer("b", depthwise(two, linear, false)),
      norm("b_n"),
      rectified("b_r", relu6),
      layer("c", convolution(4, one, linear, false)),
      norm("c_n"),
      layer("d", depthwise(two, linear, false)),
      norm("d_n"),
      rectified("d_r", relu),
      layer("e", depthwise({{5, 5}, {1, 1}, Padding::same}, linear, false)),
      norm("e_n"),
      rectified("e_r", relu6),
      layer("f", convolution(12, {{2, 2}, {1, 1}, Padding::same}, linear, false)),
      norm("f_n"),
      layer("g", GlobalAveragePool{}),
      dense("y", 3, linear)};
  // Windows of 36 numbers, which a GPU pads to 40.
  std::vector<LayerSpec> padded = {layer("a", convolution(4, two, linear, false)),
                                   norm("a_n"),
                                   rectified("a_r", relu6),
                                   layer("b", convolution(12, three, linear, false)),
                                   norm("b_n"),
                                   rectified("b_r", relu),
                                   layer("g", GlobalAveragePool{}),
                                   dense("y", 3, linear)};
  std::vector<LayerSpec> winograd = {layer("a", convolution(16, three, linear, false)),
                                     norm("a_n"),
                                     rectified("a_r", relu6),
                                     layer("b", convolution(20, three, linear, false)),
                                     norm("b_n"),
                                     rectified("b_r", relu),
                                     layer("c", convolution(16, valid, linear), {"b_r"}),
                                     layer("d", convolution(18, valid, linear, false), {"b_r"}),
                                     norm("d_n"),
                                     rectified("d_r", relu6),
                                     layer("c_mean", GlobalAveragePool{}, {"c"}),
                                     layer("d_mean", GlobalAveragePool{}, {"d_r"}),
                                     layer("all", Concatenate{}, {"c_mean", "d_mean"}),
                                     dense("y", 3, linear)};
  std::vector<LayerSpec> frozen = chain;
  for (LayerSpec& one_layer : frozen) {
    for (const char* name : {"a", "b_n", "c", "d", "d_n"})
      one_layer.trainable = one_layer.trainable && one_layer.name != name;
  }
  // Readers of one value, of which the first is not trained.
  std::vector<LayerSpec> shared = {layer("a", convolution(12, two, linear, false)),
                                   norm("a_n"),
                                   rectified("a_r", relu6),
                                   layer("b", convolution(5, one, linear), {"a_r"}, false),
                                   layer("c", convolution(3, one, linear), {"a_r"}),
                                   layer("d", depthwise(three, Activation::sigmoid), {"a_r"}),
                                   layer("b_flat", Flatten{}, {"b"}),
                                   layer("c_flat", Flatten{}, {"c"}),
                                   layer("d_flat", Flatten{}, {"d"}),
                                   layer("all", Concatenate{}, {"b_flat", "c_flat", "d_flat"}),
                                   dense("y", 3, linear)};
  return {{"normalized_chain", image_model({11, 10, 3}, chain, 3), 5, 5},
          {"normalized_chain_remainder", image_model({11, 10, 3}, chain, 3), 9, 2},
          {"normalized_odd", image_model({14, 13, 2}, odd, 3), 6, 6},
          {"normalized_packs", image_model({14, 13, 2}, packs, 3), 5, 5},
          {"normalized_padded", image_model({12, 11, 3}, padded, 3), 6, 6},
          {"normalized_winograd", image_model({12, 11, 3}, winograd, 3), 5, 4},
          {"normalized_winograd_even", image_model({14, 14, 3}, winograd, 3), 5, 5},
          {"normalized_shared", image_model({11, 10, 3}, shared, 3), 6, 5},
          {"normalized_frozen", image_model({11, 10, 3}, frozen, 3), 5, 4}};
}

std::vector<Case> all_cases() {
  std::vector<Case> all = cases();
  for (Case& c : image_cases()) all.push_back(std::move(c));
  for (Case& c : normalized_cases()) all.push_back(std::move(c));
  return all;
}

OwnedBatch batch_of(const Case& c) {
  return OwnedBatch(c.rows, *element_count(c.spec.input_shape), c.spec.label_count, c.density);
}

class Gradient : public ::testing::TestWithParam<std::tuple<std::string, int>> {};

// The loss of the float64 reference, and its slopes at some seven places of each tensor.
struct Expected {
  struct Slope {
    std::string place;
    size_t at;  // in the parameters
    double value;
  };
  std::vector<float> parameters;
  double loss = 0;
  std::vector<Slope> slopes;
};

Expected by_central_differences(const ModelSpec& spec, Engine& engine, const Batch& batch) {
  Expected expected;
  expected.parameters = values(engine.parameters());
  std::vector<double> parameters = to_double(expected.parameters);
  const auto loss = [&] { return reference_loss(spec, engine.layout(), parameters, batch, true); };
  expected.loss = loss();
  for (const ParameterTensor& tensor : engine.layout().tensors()) {
    if (tensor.segment != Segment::trainable) continue;
    const size_t step = std::max<size_t>(1, tensor.count / 7);
    for (size_t i = 0; i < tensor.count; i += step) {
      double& parameter = parameters[tensor.offset + i];
      const double kept = parameter, h = 1e-5;
      parameter = kept + h;
      const double above = loss();
      parameter = kept - h;
      const double below = loss();
      parameter = kept;
      expected.slopes.push_back({tensor.name + " [" + std::to_string(i) + "]", tensor.offset + i,
                                 (above - below) / (2 * h)});
    }
  }
  return expected;
}

// The reference is slow, so that it computes each case once for all engines.
void compare(const Case& c, Engine& engine, const Batch& batch) {
  static std::map<std::string, Expected> known;
  if (!known.contains(c.name)) known[c.name] = by_central_differences(c.spec, engine, batch);
  const Expected& expected = known[c.name];
  ASSERT_EQ(values(engine.parameters()), expected.parameters);
  const LossSums sums = engine.compute_gradients(batch);
  EXPECT_NEAR(sums.loss, expected.loss, 1e-5 * std::abs(expected.loss) + 1e-6);
  EXPECT_EQ(sums.rows, batch.rows);
  const std::vector<float> gradients = values(engine.gradients());
  for (const auto& [place, at, slope] : expected.slopes)
    ASSERT_NEAR(gradients[at], slope, 2e-4 * std::abs(slope) + 3e-5) << place;
}

TEST_P(Gradient, EqualsTheSlopeOfTheFloat64Reference) {
  const auto& [set, threads] = GetParam();
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(c.name);
    const OwnedBatch batch = batch_of(c);
    for (auto sparsity : {cpu::CpuEngine::Sparsity::never, cpu::CpuEngine::Sparsity::always}) {
      auto made = cpu_engine(c.spec, c.max_rows, threads, set);
      initialize(*made);
      made->set_sparsity(sparsity);
      compare(c, *made, batch.all());
    }
  }
}

class GpuGradient : public ::testing::TestWithParam<Backend> {};

TEST_P(GpuGradient, EqualsTheSlopeOfTheFloat64Reference) {
  if (is_missing(GetParam())) GTEST_SKIP() << kNoGpu;
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(c.name);
    const auto made = engine(GetParam(), c.spec, c.max_rows);
    initialize(*made);
    compare(c, *made, batch_of(c).all());
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, GpuGradient,
                         ::testing::Values(Backend::simulated_gpu, Backend::gpu),
                         [](const auto& info) { return name_of(info.param); });

double length_of(std::span<const float> vector) {
  double squares = 0;
  for (const float x : vector) squares += double(x) * double(x);
  return std::sqrt(squares);
}

// A bfloat16 has 8 bits, and these networks are small: rounding moves some numbers to the other
// side of a rectifier's bend. A gradient that is left out, or added twice, is farther away. Some
// are zero but for rounding, because a normalization takes out what they change.
void compare(Engine& rounded, Engine& exact, const Batch& batch) {
  initialize(exact);
  initialize(rounded);
  const double loss = exact.compute_gradients(batch).loss;
  rounded.compute_gradients(batch);  // what one step leaves in memory does not matter to the next
  const double near = rounded.compute_gradients(batch).loss;
  EXPECT_NEAR(near, loss, 0.02 * std::abs(loss));
  EXPECT_NE(near, loss);
  const std::vector<float> expected = values(exact.gradients());
  const std::vector<float> found = values(rounded.gradients());
  std::vector<float> difference(found.size());
  std::ranges::transform(found, expected, difference.begin(), std::minus());
  for (const ParameterTensor& tensor : exact.layout().tensors()) {
    const auto of = [&](const std::vector<float>& all) {
      return length_of(std::span(all).subspan(tensor.offset, tensor.count));
    };
    EXPECT_LT(of(difference), 0.2 * of(expected) + 0.001 * length_of(expected)) << tensor.name;
  }
  // A repeated step gives the same bits.
  EXPECT_EQ(rounded.compute_gradients(batch).loss, near);
  EXPECT_EQ(values(rounded.gradients()), found);
}

TEST_P(Gradient, OfBfloat16IsNearThatOfFloat32) {
  const auto& [set, threads] = GetParam();
  for (const Case& c : normalized_cases()) {
    SCOPED_TRACE(c.name);
    compare(*cpu_engine(c.spec, c.max_rows, threads, set, Precision::bfloat16),
            *cpu_engine(c.spec, c.max_rows, threads, set), batch_of(c).all());
  }
}

TEST_P(GpuGradient, OfBfloat16IsNearThatOfFloat32) {
  if (is_missing(GetParam())) GTEST_SKIP() << kNoGpu;
  for (const Case& c : normalized_cases()) {
    SCOPED_TRACE(c.name);
    compare(*engine(GetParam(), c.spec, c.max_rows, 1, Precision::bfloat16),
            *engine(GetParam(), c.spec, c.max_rows), batch_of(c).all());
  }
}

TEST(Precision, IsRefusedWhereNothingWouldBeRounded) {
  try {
    cpu_engine(cases().front().spec, 4, 1, "", Precision::bfloat16);
    FAIL() << "accepted";
  } catch (const Invalid& error) {
    EXPECT_EQ(error.exit_code(), kBadConfig);
    EXPECT_NE(std::string(error.what()).find("precision: expected float32"), std::string::npos);
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
