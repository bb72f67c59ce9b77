#pragma once

#include <span>
#include <vector>

#include "trainer/compute/graph.h"
#include "trainer/compute/precision.h"

namespace muster::compute {

// A convolution, the batch normalization of its outputs, and the rectifier after the normalization,
// if there is one. These layers become one operation, and the values between them have no memory;
// see cpu/program/normalized_value.h.
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

// Returns the groups of layers in a graph that can become one operation: no other layer reads a
// value between the layers of the group, and only convolutions read its last value.
std::vector<Fusion> find_fusions(const Graph& graph);

// A fusion's operation is at the place of the fusion's last node. Returns the node from which the
// operation at the place of `node` is made: the convolution of a fusion, `node` itself, or null
// where there is no operation.
const Node* operation_at(std::span<const Fusion> fusions, const Node& node);
// is_inside() returns whether a value lies between the nodes of a fusion; is_end() returns whether
// it is the output of a fusion's last node.
bool is_inside(std::span<const Fusion> fusions, int value);
bool is_end(std::span<const Fusion> fusions, int value);
// Returns the value that a convolution's operation computes: the convolution's output or, in a
// fusion, the output of the fusion's last node.
int output_of(std::span<const Fusion> fusions, const Node& convolution);

// Throws Invalid if the model has nothing that this precision would round.
void check_precision(Precision precision, const std::vector<Fusion>& fusions);

}  // namespace muster::compute
