#pragma once

#include <span>
#include <string>
#include <vector>

#include "trainer/compute/graph.h"
#include "trainer/onnx/graph_builder.h"

namespace muster::onnx {

// Adds a model's layers, in their form outside of training, to an ONNX graph. In ONNX the channels
// of an image come before the height, in Muster last: if a layer needs the other order, a value is
// transposed once.
class LayerExporter {
 public:
  // `parameters` are graph.layout.size() floats. The references must outlive this object.
  LayerExporter(const compute::Graph& graph, std::span<const float> parameters,
                GraphBuilder& builder);

  // Adds all layers. `input` is the tensor of the model's input, [batch, shape of a sample].
  void add_layers(const std::string& input);
  // Returns a value of the graph as a tensor of rows, [batch, elements of a sample].
  std::string rows(int value);

 private:
  // The tensors of a value; an empty name: not made yet.
  struct Forms {
    std::string plain;  // [batch, shape of a sample]
    std::string image;  // [batch, channels, height, width]
  };

  const std::vector<int64_t>& shape_of(int value) const;
  Forms& forms_of(int value) { return forms_[static_cast<size_t>(value)]; }
  const std::string& plain(int value);
  const std::string& image(int value);
  // Returns the plain tensor, but as rows for samples of two axes. Layers that distinguish features
  // use this form.
  std::string features(int value);
  bool are_images(const compute::Node& node);

  std::string parameter(const std::string& name);
  std::string transposed_kernel(const compute::Node& node, bool depthwise);
  std::string reshaped(const std::string& tensor, const std::string& name,
                       std::vector<int64_t> shape);
  std::string activated(const std::string& tensor, const std::string& name,
                        compute::Activation activation);
  std::vector<Attribute> window_attributes(const compute::Node& node,
                                           const compute::Window& window);
  void add_convolution(const compute::Node& node, const compute::Window& window,
                       compute::Activation activation, bool depthwise);
  void add_pool(const compute::Node& node, const char* operation, const compute::Window& window,
                std::vector<Attribute> more);
  void join(const compute::Node& node, const char* operation, bool concatenates);

  void add(const compute::Node& node, const compute::Dense& dense);
  void add(const compute::Node& node, const compute::ActivationLayer& layer);
  void add(const compute::Node& node, const compute::Dropout& dropout);
  void add(const compute::Node& node, const compute::BatchNormalization& normalization);
  void add(const compute::Node& node, const compute::Add& add);
  void add(const compute::Node& node, const compute::Concatenate& concatenate);
  void add(const compute::Node& node, const compute::Conv2d& convolution);
  void add(const compute::Node& node, const compute::DepthwiseConv2d& convolution);
  void add(const compute::Node& node, const compute::MaxPool& pool);
  void add(const compute::Node& node, const compute::AveragePool& pool);
  void add(const compute::Node& node, const compute::GlobalAveragePool& pool);
  void add(const compute::Node& node, const compute::Flatten& flatten);
  void add(const compute::Node& node, const compute::Reshape& reshape);

  const compute::Graph& graph_;
  const std::span<const float> parameters_;
  GraphBuilder& builder_;
  std::vector<Forms> forms_;  // forms of each value
};

}  // namespace muster::onnx
