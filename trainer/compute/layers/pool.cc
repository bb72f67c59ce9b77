#include "trainer/compute/layers/window.h"

namespace muster::compute {
namespace {

Described pooled(const Window& window, std::span<const LayerInput> inputs) {
  if (auto mismatch = require_one(inputs)) return *mismatch;
  const auto geometry = geometry_of(window, inputs[0].shape);
  if (const auto* mismatch = std::get_if<Mismatch>(&geometry)) return *mismatch;
  const auto& g = std::get<Geometry>(geometry);
  return LayerShape{{g.output[0], g.output[1], g.channels}, {}};
}

}  // namespace

Described describe(const MaxPool& pool, const LayerSpec&, std::span<const LayerInput> inputs) {
  return pooled(pool.window, inputs);
}

Described describe(const AveragePool& pool, const LayerSpec&, std::span<const LayerInput> inputs) {
  return pooled(pool.window, inputs);
}

Described describe(const GlobalAveragePool&, const LayerSpec&, std::span<const LayerInput> inputs) {
  if (auto mismatch = require_one(inputs)) return *mismatch;
  const auto geometry = geometry_of(Window{}, inputs[0].shape);
  if (const auto* mismatch = std::get_if<Mismatch>(&geometry)) return *mismatch;
  return LayerShape{{std::get<Geometry>(geometry).channels}, {}};
}

}  // namespace muster::compute
