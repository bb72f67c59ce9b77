#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/compute/models/model_spec.h"
#include "trainer/compute/parameter_layout.h"

namespace muster::compute {

// The static graph that every backend turns into its own program: shapes known, names resolved,
// what needs a gradient decided. Backend-neutral.

// The output of a layer (value 0: the model's input), for one sample.
struct Value {
  std::vector<int64_t> shape;
  int64_t width = 0;            // product of shape
  bool needs_gradient = false;  // something trainable lies at or before it
};

struct Node {
  std::string name;
  LayerKind kind;
  bool trainable = true;
  std::vector<int> inputs;              // values
  int output = 0;                       // a value
  std::vector<std::string> parameters;  // names in the layout, in the order the layer declares them
};

struct Graph {
  std::vector<Value> values;
  std::vector<Node> nodes;  // topological order
  ParameterLayout layout;
  Loss loss = Loss::softmax_cross_entropy;
  int64_t label_count = 0;
  // What the loss meets: the last node's output. A softmax that ends a cross entropy model is left
  // to the loss, so this value holds logits there.
  int output = 0;
  // Whether predictions are softmax(values[output]).
  bool softmax_predictions = false;
};

// Throws Invalid, naming the layer, where names or shapes do not fit.
Graph build_graph(const ModelSpec& model);

}  // namespace muster::compute
