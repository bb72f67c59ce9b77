#include "trainer/compute/sliding.h"

#include "trainer/compute/graph.h"
#include "trainer/compute/layers/window.h"

namespace muster::compute {

Sliding sliding_of(const Window& window, const Graph& graph, int value) {
  const auto described = geometry_of(window, graph.values[static_cast<size_t>(value)].shape);
  const Geometry& g = std::get<Geometry>(described);
  return {g.input[0], g.input[1],   g.channels,   g.output[0], g.output[1], g.size[0],
          g.size[1],  g.strides[0], g.strides[1], g.before[0], g.before[1]};
}

Window whole_image(const Graph& graph, int value) {
  const auto shape = as_image(graph.values[static_cast<size_t>(value)].shape);
  return {{(*shape)[0], (*shape)[1]}, {1, 1}, Padding::valid};
}

}  // namespace muster::compute
