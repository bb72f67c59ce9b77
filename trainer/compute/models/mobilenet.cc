#include "trainer/compute/models/mobilenet.h"

#include <algorithm>

namespace muster::compute {
namespace {

struct Block {
  int64_t filters;  // filters of the pointwise convolution, at a depth multiplier of 1
  int64_t stride;   // stride of the depthwise convolution
};
constexpr Block kBlocks[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
                             {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};

constexpr Initializer kInitializer{InitializerKind::truncated_normal, 0.09f};

Window window_of(int64_t size, int64_t stride) {
  return {{size, size}, {stride, stride}, Padding::same};
}

}  // namespace

Conv2d normalized_convolution(const MobileNetOptions& options, int64_t filters,
                              const Window& window, const Initializer& initializer) {
  Conv2d convolution;
  const double wanted = static_cast<double>(filters) * options.depth_multiplier;
  convolution.filters = std::max(options.least_filters, static_cast<int64_t>(wanted));
  convolution.window = window;
  convolution.use_bias = false;
  convolution.kernel_initializer = initializer;
  return convolution;
}

void add_normalized(std::vector<LayerSpec>& layers, const MobileNetOptions& options,
                    const std::string& name, const LayerKind& convolution) {
  BatchNormalization normalization;
  normalization.momentum = options.normalization_momentum;
  normalization.epsilon = 0.001f;
  layers.push_back({name, convolution, {}, true});
  layers.push_back({name + "_normalization", normalization, {}, true});
  layers.push_back({name + "_relu6", ActivationLayer{Activation::relu6}, {}, true});
}

std::vector<LayerSpec> mobilenet_backbone(const MobileNetOptions& options) {
  std::vector<LayerSpec> layers;
  const auto add = [&](const std::string& name, int64_t filters, const Window& window) {
    add_normalized(layers, options, name,
                   normalized_convolution(options, filters, window, kInitializer));
  };
  add("Conv2d_0", 32, window_of(3, 2));
  for (size_t i = 0; i < std::size(kBlocks); ++i) {
    const std::string name = "Conv2d_" + std::to_string(i + 1);
    DepthwiseConv2d depthwise;
    depthwise.window = window_of(3, kBlocks[i].stride);
    depthwise.use_bias = false;
    depthwise.kernel_initializer = kInitializer;
    add_normalized(layers, options, name + "_depthwise", depthwise);
    add(name + "_pointwise", kBlocks[i].filters, window_of(1, 1));
  }
  return layers;
}

ModelSpec mobilenet(const MobileNetOptions& options, int64_t classes) {
  ModelSpec model{
      "mobilenet-v1", {224, 224, 3}, classes, mobilenet_backbone(options), SoftmaxCrossEntropy{}};
  Dense logits;
  logits.units = classes;
  logits.kernel_initializer = kInitializer;
  model.layers.push_back({"mean", GlobalAveragePool{}, {}, true});
  model.layers.push_back({"dropout", Dropout{0.001f}, {}, true});
  model.layers.push_back({"logits", logits, {}, true});
  return model;
}

}  // namespace muster::compute
