#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/compute/mismatch.h"
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
  int memory = 0;               // the value in whose memory it lies: itself, unless it is reshaped
};

struct Node {
  std::string name;
  LayerKind kind;
  bool trainable = true;
  std::vector<int> inputs;              // values
  int output = 0;                       // a value
  std::vector<std::string> parameters;  // names in the layout, in the order the layer declares them
  double multiplications = 0;           // in the forward pass of one sample
};

struct Graph {
  std::vector<Value> values;
  std::vector<Node> nodes;  // topological order
  ParameterLayout layout;
  LossKind loss;
  int64_t label_count = 0;
  // The value that the loss is computed from: the last node's output. If the loss takes the softmax
  // itself (loss.h), it replaces a softmax that ends the model, and this value holds logits.
  int output = 0;
  // Whether predictions are softmax(values[output]).
  bool softmax_predictions = false;

  // Returns the number of outputs of a row.
  int64_t outputs() const { return values[static_cast<size_t>(output)].width; }
};

// Builds the graph. Throws Invalid if names or shapes do not fit, with a line for each mismatch
// that names its layer.
Graph build_graph(const ModelSpec& model);

// The mismatches that build_graph would report, for a model whose data may not be known yet. An
// empty input_shape and a label_count of 0 are skipped, with all checks that depend on them. A
// mismatch that only follows from another one is not reported.
struct GraphCheck {
  std::vector<Mismatch> mismatches;  // in the order of the layers
  int64_t outputs = 0;               // the loss's inputs for one sample; 0: not known
  bool ends_in_softmax = false;      // the last layer's softmax is left to the loss
  bool softmax_of_softmax = false;   // the loss's softmax gets the output of a softmax
};
GraphCheck check_graph(const ModelSpec& model);

// Returns the layout that an Engine of this model will have, without building one (a ps needs no
// arena).
ParameterLayout make_layout(const ModelSpec& model);

}  // namespace muster::compute
