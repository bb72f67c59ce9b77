#include "trainer/compute/layers/window.h"

namespace muster::compute {
namespace {

// Returns the shape of a layer whose output has `channels`, with `kernel` as its weights.
Described described(const LayerSpec& layer, const Geometry& geometry, int64_t channels,
                    const std::vector<int64_t>& kernel, const auto& settings) {
  if (!element_count(kernel)) {
    return Mismatch{-1, "", "at most 2^32 weights", "a kernel of " + to_string(kernel)};
  }
  const auto bias = settings.use_bias ? std::optional(channels) : std::nullopt;
  LayerShape shape{
      {geometry.output[0], geometry.output[1], channels},
      kernel_and_bias(layer, kernel, settings.kernel_initializer, bias, settings.bias_initializer)};
  shape.multiplications =
      static_cast<double>(geometry.places()) * static_cast<double>(*element_count(kernel));
  return shape;
}

}  // namespace

Described describe(const Conv2d& convolution, const LayerSpec& layer,
                   std::span<const LayerInput> inputs) {
  if (auto mismatch = require_one(inputs)) return *mismatch;
  if (convolution.filters < 1)
    return Mismatch{-1, "filters", "at least 1 filter", std::to_string(convolution.filters)};
  const auto geometry = geometry_of(convolution.window, inputs[0].shape);
  if (const auto* mismatch = std::get_if<Mismatch>(&geometry)) return *mismatch;
  const auto& g = std::get<Geometry>(geometry);
  Described result =
      described(layer, g, convolution.filters,
                {g.size[0], g.size[1], g.channels, convolution.filters}, convolution);
  if (auto* shape = std::get_if<LayerShape>(&result)) shape->parameters.front().regularized = true;
  return result;
}

Described describe(const DepthwiseConv2d& convolution, const LayerSpec& layer,
                   std::span<const LayerInput> inputs) {
  if (auto mismatch = require_one(inputs)) return *mismatch;
  const auto geometry = geometry_of(convolution.window, inputs[0].shape);
  if (const auto* mismatch = std::get_if<Mismatch>(&geometry)) return *mismatch;
  const auto& g = std::get<Geometry>(geometry);
  return described(layer, g, g.channels, {g.size[0], g.size[1], g.channels, 1}, convolution);
}

}  // namespace muster::compute
