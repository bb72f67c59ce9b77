#include "trainer/compute/graph.h"

#include <map>

#include "common/error.h"
#include "trainer/compute/engine.h"
#include "trainer/compute/layers/layer.h"

namespace muster::compute {
namespace {

class Builder {
 public:
  explicit Builder(const ModelSpec& model) : model_(model) {
    if (model.layers.empty()) throw Invalid("model \"" + model.name + "\" has no layers");
    values_.push_back({model.input_shape, element_count("input", model.input_shape), false});
    names_["input"] = 0;
  }

  Graph build() {
    for (size_t i = 0; i < model_.layers.size(); ++i) {
      add(model_.layers[i], i + 1 == model_.layers.size());
    }
    check_loss();
    const bool classify = model_.loss == Loss::softmax_cross_entropy;
    return Graph{std::move(values_),
                 std::move(nodes_),
                 ParameterLayout(std::move(tensors_)),
                 model_.loss,
                 model_.label_count,
                 last_,
                 classify};
  }

 private:
  // A softmax of its own node, and none where the loss computes it from logits.
  void add(const LayerSpec& layer, bool final) {
    const bool fused = final && model_.loss == Loss::softmax_cross_entropy;
    LayerSpec lowered = layer;
    if (auto* dense = std::get_if<Dense>(&lowered.kind);
        dense && dense->activation == Activation::softmax) {
      dense->activation = Activation::linear;
      add_node(lowered);
      if (!fused) {
        LayerSpec softmax{layer.name + "/softmax", ActivationLayer{Activation::softmax}, {}, true};
        add_node(softmax);
        names_[layer.name] = last_;
      }
      return;
    }
    if (auto* activation = std::get_if<ActivationLayer>(&lowered.kind);
        activation && activation->activation == Activation::softmax && fused) {
      activation->activation = Activation::linear;
    }
    add_node(lowered);
  }

  void add_node(const LayerSpec& layer) {
    if (names_.count(layer.name)) {
      throw Invalid("layer \"" + layer.name + "\": another layer has this name");
    }
    Node node{layer.name, layer.kind, layer.trainable, resolve(layer), 0, {}};
    std::vector<LayerInput> inputs;
    bool needs_gradient = false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Value& value = values_[static_cast<size_t>(node.inputs[i])];
      inputs.push_back({layer.inputs.empty() ? "the layer before" : layer.inputs[i], value.shape});
      needs_gradient |= value.needs_gradient;
    }
    LayerShape shape = describe_layer(layer, inputs);
    for (ParameterTensor& tensor : shape.parameters) {
      node.parameters.push_back(tensor.name);
      needs_gradient |= tensor.segment == Segment::trainable;
      tensors_.push_back(std::move(tensor));
    }
    last_ = node.output = static_cast<int>(values_.size());
    names_[layer.name] = last_;
    values_.push_back({shape.output, element_count(layer.name, shape.output), needs_gradient});
    nodes_.push_back(std::move(node));
  }

  std::vector<int> resolve(const LayerSpec& layer) const {
    if (layer.inputs.empty()) return {last_};
    std::vector<int> inputs;
    for (const std::string& name : layer.inputs) {
      const auto found = names_.find(name);
      if (found == names_.end()) {
        throw Invalid("layer \"" + layer.name + "\": its input \"" + name +
                      "\" is neither \"input\" nor an earlier layer");
      }
      inputs.push_back(found->second);
    }
    return inputs;
  }

  void check_loss() const {
    const int64_t width = values_[static_cast<size_t>(last_)].width;
    if (width == model_.label_count) return;
    throw Invalid("layer \"" + nodes_.back().name + "\": the loss expects " +
                  std::to_string(model_.label_count) + " outputs, found " + std::to_string(width));
  }

  const ModelSpec& model_;
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<ParameterTensor> tensors_;
  std::map<std::string, int> names_;
  int last_ = 0;
};

}  // namespace

Graph build_graph(const ModelSpec& model) {
  return Builder(model).build();
}

ParameterLayout make_layout(const ModelSpec& model) {
  return build_graph(model).layout;
}

}  // namespace muster::compute
