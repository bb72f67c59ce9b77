#include "trainer/compute/graph.h"

#include <map>

#include "common/error.h"
#include "trainer/compute/engine.h"
#include "trainer/compute/layers/layer.h"
#include "trainer/compute/loss.h"

namespace muster::compute {
namespace {

// Adds layer after layer, and continues after a layer that does not fit: the values computed from
// such a layer's output are not known.
class Builder {
 public:
  explicit Builder(const ModelSpec& model) : model_(model) {
    if (model.layers.empty()) report(-1, "", "layers", "none");
    const std::optional<int64_t> width = element_count(model.input_shape);
    if (!width) report(-1, "input", kCountable, to_string(model.input_shape));
    values_.push_back({model.input_shape, width.value_or(0), false, 0});
    known_ = {width && !model.input_shape.empty()};
    names_["input"] = 0;
    for (size_t i = 0; i < model.layers.size(); ++i) add(i);
    if (!model.layers.empty()) check_loss();
  }

  const std::vector<Mismatch>& mismatches() const { return mismatches_; }

  GraphCheck check() && {
    GraphCheck result;
    result.mismatches = std::move(mismatches_);
    result.outputs = known_.back() && !nodes_.empty() ? values_.back().width : 0;
    result.leaves_to_loss = fused_;
    result.computes_twice = meets_function();
    return result;
  }

  // Precondition: there are no mismatches, and the data are known.
  Graph build() && {
    return Graph{std::move(values_),
                 std::move(nodes_),
                 ParameterLayout(std::move(tensors_)),
                 model_.loss,
                 model_.label_count,
                 last_,
                 describe(model_.loss).function};
  }

 private:
  // Whether this is the function that the loss computes itself.
  bool is_in_loss(Activation activation) const {
    return activation != Activation::linear &&
           activation == activation_of(describe(model_.loss).function);
  }

  void report(int layer, std::string field, std::string expected, std::string found) {
    mismatches_.push_back({layer, std::move(field), std::move(expected), std::move(found)});
  }

  // Adds a softmax as a node of its own, and no function that the loss computes itself.
  void add(size_t index) {
    const LayerSpec& layer = model_.layers[index];
    LayerSpec lowered = layer;
    auto* dense = std::get_if<Dense>(&lowered.kind);
    auto* alone = std::get_if<ActivationLayer>(&lowered.kind);
    Activation none = Activation::linear;
    Activation& activation = dense != nullptr   ? dense->activation
                             : alone != nullptr ? alone->activation
                                                : none;
    if (index + 1 == model_.layers.size() && is_in_loss(activation)) {
      activation = Activation::linear;
      fused_ = true;
    } else if (dense != nullptr && activation == Activation::softmax) {
      activation = Activation::linear;
      add_node(index, lowered);
      LayerSpec softmax{layer.name + "/softmax", ActivationLayer{Activation::softmax}, {}, true};
      add_node(index, softmax);
      names_[layer.name] = last_;
      return;
    }
    add_node(index, lowered);
  }

  void add_node(size_t index, const LayerSpec& layer) {
    const int number = static_cast<int>(index);
    if (names_.count(layer.name) != 0) {
      report(number, "name", "a name that no other layer has", "\"" + layer.name + "\"");
    }
    Node node{layer.name, layer.kind, layer.trainable, resolve(number, layer), 0, {}, 0};
    Value output;
    std::vector<LayerInput> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const int input = node.inputs[i];
      if (input < 0 || !known_[static_cast<size_t>(input)]) continue;
      const Value& value = values_[static_cast<size_t>(input)];
      inputs.push_back({layer.inputs.empty() ? "the layer before" : layer.inputs[i], value.shape});
      output.needs_gradient |= value.needs_gradient;
    }
    const bool all = inputs.size() == node.inputs.size();
    std::optional<std::vector<int64_t>> shape =
        all ? describe_whole(number, layer, inputs, node, output)
            : describe_part(number, layer, inputs);
    const std::optional<int64_t> width = shape ? element_count(*shape) : std::nullopt;
    if (shape && !width) report(number, "", kCountable, to_string(*shape));
    last_ = node.output = static_cast<int>(values_.size());
    names_[layer.name] = last_;
    if (width) output.shape = std::move(*shape);
    output.width = width.value_or(0);
    output.memory = is_view(layer.kind) ? memory_of(node.inputs[0]) : node.output;
    values_.push_back(std::move(output));
    known_.push_back(width.has_value());
    nodes_.push_back(std::move(node));
  }

  // Returns the shape of the output, and registers the layer's parameters.
  std::optional<std::vector<int64_t>> describe_whole(int number, const LayerSpec& layer,
                                                     const std::vector<LayerInput>& inputs,
                                                     Node& node, Value& output) {
    Described described = describe_layer(layer, inputs);
    if (auto* mismatch = std::get_if<Mismatch>(&described)) {
      report(number, mismatch->field, mismatch->expected, mismatch->found);
      return std::nullopt;
    }
    auto& shape = std::get<LayerShape>(described);
    node.multiplications = shape.multiplications;
    for (ParameterTensor& tensor : shape.parameters) {
      node.parameters.push_back(tensor.name);
      output.needs_gradient |= tensor.segment == Segment::trainable;
      tensors_.push_back(std::move(tensor));
    }
    return std::move(shape.output);
  }

  // Returns the shape of the output as far as it follows from the known inputs, if some inputs are
  // not known.
  std::optional<std::vector<int64_t>> describe_part(int number, const LayerSpec& layer,
                                                    const std::vector<LayerInput>& known) {
    if (const auto* dense = std::get_if<Dense>(&layer.kind)) return {{dense->units}};
    if (known.size() >= 2) {  // a layer that joins its inputs
      const Described described = describe_layer(layer, known);
      if (const auto* mismatch = std::get_if<Mismatch>(&described)) {
        report(number, mismatch->field, mismatch->expected, mismatch->found);
        return std::nullopt;
      }
    }
    if (std::holds_alternative<Add>(layer.kind) && !known.empty())
      return as_features(known[0].shape);
    return std::nullopt;
  }

  static bool is_view(const LayerKind& kind) {
    return std::holds_alternative<Flatten>(kind) || std::holds_alternative<Reshape>(kind);
  }

  int memory_of(int value) const {
    return value < 0 ? 0 : values_[static_cast<size_t>(value)].memory;
  }

  // Returns the input values; -1 for a name that is not known.
  std::vector<int> resolve(int number, const LayerSpec& layer) {
    if (layer.inputs.empty()) return {last_};
    std::vector<int> inputs;
    for (size_t i = 0; i < layer.inputs.size(); ++i) {
      const std::string& name = layer.inputs[i];
      const auto found = names_.find(name);
      if (found == names_.end()) {
        report(number, "inputs[" + std::to_string(i) + "]",
               "\"input\" or the name of an earlier layer", "\"" + name + "\"");
      }
      inputs.push_back(found == names_.end() ? -1 : found->second);
    }
    return inputs;
  }

  void check_loss() {
    const Value& output = values_.back();
    // The outputs of a detector are compared with its anchors when its loss is made.
    if (describe(model_.loss).labels == LabelKind::objects) return;
    const int64_t each = outputs_for_each(model_.loss);
    if (!known_.back() || model_.label_count == 0 || output.width == each * model_.label_count)
      return;
    const bool dense = std::holds_alternative<Dense>(model_.layers.back().kind);
    const bool classes = describe(model_.loss).labels == LabelKind::classes;
    report(static_cast<int>(model_.layers.size()) - 1, dense ? "units" : "",
           std::to_string(each * model_.label_count) + " outputs, one for each " +
               (each > 1  ? "quantile of each number of a target"
                : classes ? "class"
                          : "number of a target"),
           std::to_string(output.width));
  }

  // Whether what the loss computes its function of is the same function already, perhaps with some
  // values dropped.
  bool meets_function() const {
    for (int value = last_; value > 0;) {
      const Node& node = nodes_[static_cast<size_t>(value) - 1];
      const auto* dense = std::get_if<Dense>(&node.kind);
      if (dense != nullptr) return is_in_loss(dense->activation);
      const auto* activation = std::get_if<ActivationLayer>(&node.kind);
      if (activation != nullptr && is_in_loss(activation->activation)) return true;
      const bool passes = std::holds_alternative<Dropout>(node.kind) ||
                          (activation && activation->activation == Activation::linear);
      if (!passes || node.inputs.size() != 1) return false;
      value = node.inputs[0];
    }
    return false;
  }

  const ModelSpec& model_;
  std::vector<Value> values_;
  std::vector<bool> known_;  // for each of values_
  std::vector<Node> nodes_;
  std::vector<ParameterTensor> tensors_;
  std::map<std::string, int> names_;
  std::vector<Mismatch> mismatches_;
  int last_ = 0;
  bool fused_ = false;
};

std::string text(const ModelSpec& model, const Mismatch& mismatch) {
  std::string line = "model \"" + model.name + "\"";
  if (mismatch.layer >= 0) {
    line = "layer \"" + model.layers[static_cast<size_t>(mismatch.layer)].name + "\"";
  }
  if (!mismatch.field.empty()) line += ", " + mismatch.field;
  return line + ": expected " + mismatch.expected + ", found " + mismatch.found;
}

}  // namespace

Graph build_graph(const ModelSpec& model) {
  if (model.input_shape.empty() || model.label_count < 1) {
    throw Invalid("model \"" + model.name + "\": expected the shape of a sample and of its label");
  }
  Builder builder(model);
  std::string problems;
  for (const Mismatch& mismatch : builder.mismatches()) {
    problems += (problems.empty() ? "" : "\n") + text(model, mismatch);
  }
  if (!problems.empty()) throw Invalid(problems);
  return std::move(builder).build();
}

GraphCheck check_graph(const ModelSpec& model) {
  return Builder(model).check();
}

ParameterLayout make_layout(const ModelSpec& model) {
  return build_graph(model).layout;
}

}  // namespace muster::compute
