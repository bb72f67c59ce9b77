#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/compute/mismatch.h"
#include "trainer/compute/models/model_spec.h"
#include "trainer/compute/parameter_layout.h"

namespace muster::compute {

// The static graph that every backend turns into its own program: shapes known, names resolved, and
// the values that need a gradient marked. Backend-neutral.

// The output of a layer (value 0: the model's input), for one sample.
struct Value {
  std::vector<int64_t> shape;
  int64_t width = 0;            // product of shape
  bool needs_gradient = false;  // this layer, or a layer before it, is trainable
  int memory = 0;  // the value whose memory holds this value: itself, unless it is reshaped
};

struct Node {
  std::string name;
  LayerKind kind;
  bool trainable = true;
  std::vector<int> inputs;  // indices of values
  int output = 0;           // index of a value
  // Names in the layout, in the order in which the layer declares them.
  std::vector<std::string> parameters;
  double multiplications = 0;  // in the forward pass of one sample
};

struct Graph {
  std::vector<Value> values;
  std::vector<Node> nodes;  // topological order
  ParameterLayout layout;
  LossKind loss;
  int64_t label_count = 0;
  // The value that the loss is computed from: the last node's output. If the loss computes a
  // function of it itself (loss.h), that function at the end of the model is left out.
  int output = 0;
  // Predictions are this function of values[output].
  OutputFunction prediction = OutputFunction::none;

  // Returns the number of outputs of a row.
  int64_t outputs() const { return values[static_cast<size_t>(output)].width; }
};

// Builds the graph. Throws Invalid if names or shapes do not fit; the text has a line for each
// mismatch, with the layer's name.
Graph build_graph(const ModelSpec& model);

// The mismatches that build_graph would report, for a model whose data may not be known yet. An
// empty input_shape and a label_count of 0 mean "not known"; the checks that depend on them are
// skipped. A mismatch that is only a consequence of another mismatch is not reported.
struct GraphCheck {
  std::vector<Mismatch> mismatches;  // in the order of the layers
  int64_t outputs = 0;               // the loss's inputs for one sample; 0: not known
  bool leaves_to_loss = false;       // the function at the end is the one that the loss computes
  bool computes_twice = false;       // the loss's function gets the output of the same function
};
GraphCheck check_graph(const ModelSpec& model);

// Returns the layout that an Engine of this model will have, without building the engine (a ps
// needs no arena).
ParameterLayout make_layout(const ModelSpec& model);

}  // namespace muster::compute
