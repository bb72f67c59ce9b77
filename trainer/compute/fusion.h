#pragma once

#include <span>
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
  // The bounds of the rectifier; infinite where there is none.
  float low() const;
  float high() const;
  bool has(const Node& node) const {
    return &node == convolution || &node == normalization || &node == activation;
  }
};

// Returns the layers of a graph that can be one operation: those of which nobody else reads a value
// between them, and only convolutions read the last one.
std::vector<Fusion> find_fusions(const Graph& graph);

// A fusion's operation has the place of its last node. Returns the node that the operation at the
// place of `node` is made of: the convolution of a fusion, `node` itself, or null where there is no
// operation.
const Node* operation_at(std::span<const Fusion> fusions, const Node& node);
// Returns whether a value lies between the nodes of a fusion, and whether it is the last one's.
bool is_inside(std::span<const Fusion> fusions, int value);
bool is_end(std::span<const Fusion> fusions, int value);
// Returns the value that a convolution's operation computes: its output, or of a fusion the last
// one's.
int output_of(std::span<const Fusion> fusions, const Node& convolution);

// Throws Invalid where there is nothing that this precision would round.
void check_precision(Precision precision, const std::vector<Fusion>& fusions);

}  // namespace muster::compute
