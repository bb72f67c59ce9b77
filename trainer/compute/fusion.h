#pragma once

#include <vector>

#include "trainer/compute/graph.h"
#include "trainer/compute/precision.h"

namespace muster::compute {

// A convolution, the batch normalization of its outputs, and the rectifier after that, if there is
// one. They become one operation, and the values between them have no memory; see
// cpu/program/normalized_value.h.
struct Fusion {
  const Node* convolution = nullptr;
  const Node* normalization = nullptr;
  const Node* activation = nullptr;  // null: none
  const Node& last() const { return activation ? *activation : *normalization; }
  bool has(const Node& node) const {
    return &node == convolution || &node == normalization || &node == activation;
  }
};

// Returns the layers of a graph that can be one operation: those of which nobody else reads a value
// between them, and only convolutions read the last one.
std::vector<Fusion> find_fusions(const Graph& graph);

// Throws Invalid where there is nothing that this precision would round.
void check_precision(Precision precision, const std::vector<Fusion>& fusions);

}  // namespace muster::compute
