#include "trainer/compute/models/mobilenet.h"

#include <gtest/gtest.h>

#include "trainer/compute/graph.h"

namespace muster::compute::testing {
namespace {

struct Size {
  float depth_multiplier;
  size_t trained, statistics;
};

// The numbers that Keras's summary of the same network gives, with 1,000 classes.
TEST(MobileNet, HasAsManyParametersAsKerass) {
  for (const Size& size : {Size{1.0f, 4'231'976, 21'888}, Size{0.25f, 470'072, 5'472}}) {
    const Graph graph = build_graph(mobilenet({.depth_multiplier = size.depth_multiplier}, 1000));
    size_t trained = 0, statistics = 0;
    for (const ParameterTensor& tensor : graph.layout.tensors())
      (tensor.segment == Segment::state ? statistics : trained) += tensor.count;
    EXPECT_EQ(trained, size.trained) << size.depth_multiplier;
    EXPECT_EQ(statistics, size.statistics) << size.depth_multiplier;
  }
}

TEST(MobileNet, HasTheFeatureMapsThatADetectorNeeds) {
  ModelSpec model = mobilenet({}, 3);
  model.input_shape = {300, 300, 3};
  const Graph graph = build_graph(model);
  const auto shape_of = [&](const std::string& name) {
    for (const Node& node : graph.nodes)
      if (node.name == name) return graph.values[static_cast<size_t>(node.output)].shape;
    return std::vector<int64_t>{};
  };
  EXPECT_EQ(shape_of("Conv2d_11_pointwise_relu6"), (std::vector<int64_t>{19, 19, 512}));
  EXPECT_EQ(shape_of("Conv2d_13_pointwise_relu6"), (std::vector<int64_t>{10, 10, 1024}));
  EXPECT_EQ(shape_of("logits"), (std::vector<int64_t>{3}));
}

TEST(MobileNet, KeepsEightFiltersInTheThinnestNetwork) {
  const auto layers = mobilenet_backbone({.depth_multiplier = 0.01f});
  EXPECT_EQ(std::get<Conv2d>(layers.front().kind).filters, 8);
}

}  // namespace
}  // namespace muster::compute::testing
