#include "trainer/onnx/layers.h"

#include <algorithm>

#include "trainer/compute/layers/window.h"

namespace muster::onnx {

using compute::Activation;
using compute::Node;

LayerExporter::LayerExporter(const compute::Graph& graph, std::span<const float> parameters,
                             GraphBuilder& builder)
    : graph_(graph), parameters_(parameters), builder_(builder), forms_(graph.values.size()) {}

void LayerExporter::add_layers(const std::string& input) {
  forms_of(0).plain = input;
  for (const Node& node : graph_.nodes)
    std::visit([&](const auto& kind) { add(node, kind); }, node.kind);
}

const std::vector<int64_t>& LayerExporter::shape_of(int value) const {
  return graph_.values[static_cast<size_t>(value)].shape;
}

const std::string& LayerExporter::plain(int value) {
  Forms& forms = forms_of(value);
  if (forms.plain.empty())
    forms.plain = builder_.add("Transpose", forms.image + "/channels_last", {forms.image},
                               {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  return forms.plain;
}

const std::string& LayerExporter::image(int value) {
  Forms& forms = forms_of(value);
  if (!forms.image.empty()) return forms.image;
  const std::vector<int64_t>& shape = shape_of(value);
  const std::string name = forms.plain + "/channels_first";
  forms.image = shape.size() == 2 ? reshaped(forms.plain, name, {1, shape[0], shape[1]})
                                  : builder_.add("Transpose", name, {forms.plain},
                                                 {{"perm", std::vector<int64_t>{0, 3, 1, 2}}});
  return forms.image;
}

std::string LayerExporter::features(int value) {
  return shape_of(value).size() == 2 ? rows(value) : plain(value);
}

std::string LayerExporter::rows(int value) {
  const std::string& tensor = plain(value);
  if (shape_of(value).size() == 1) return tensor;
  return builder_.add("Flatten", tensor + "/rows", {tensor}, {{"axis", int64_t{1}}});
}

// Whether all inputs of the node have been made with the channels first.
bool LayerExporter::are_images(const Node& node) {
  return std::ranges::all_of(node.inputs, [&](int input) {
    return shape_of(input).size() == 3 && !forms_of(input).image.empty();
  });
}

std::string LayerExporter::parameter(const std::string& name) {
  const compute::ParameterTensor& tensor = graph_.layout.find(name);
  return builder_.constant(name, tensor.shape, parameters_.subspan(tensor.offset, tensor.count));
}

// Muster's kernels are [height, width, channels, filters], ONNX's [filters, channels, height,
// width]; depthwise ones are [height, width, channels, 1] and [channels, 1, height, width].
std::string LayerExporter::transposed_kernel(const Node& node, bool depthwise) {
  const compute::ParameterTensor& tensor = graph_.layout.find(node.parameters[0]);
  const float* from = parameters_.data() + tensor.offset;
  const int64_t places = tensor.shape[0] * tensor.shape[1];
  const int64_t outer = depthwise ? tensor.shape[2] : tensor.shape[3];
  const int64_t inner = depthwise ? 1 : tensor.shape[2];
  std::vector<float> kernel;
  kernel.reserve(tensor.count);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i)
      for (int64_t place = 0; place < places; ++place)
        kernel.push_back(from[(place * inner + i) * outer + o]);
  return builder_.constant(tensor.name, {outer, inner, tensor.shape[0], tensor.shape[1]}, kernel);
}

// Reshapes each sample to `shape`.
std::string LayerExporter::reshaped(const std::string& tensor, const std::string& name,
                                    std::vector<int64_t> shape) {
  shape.insert(shape.begin(), -1);
  return builder_.add("Reshape", name, {tensor, builder_.constant(name + "/shape", shape)});
}

std::string LayerExporter::activated(const std::string& tensor, const std::string& name,
                                     Activation activation) {
  switch (activation) {
    case Activation::relu:
      return builder_.add("Relu", name + "/relu", {tensor});
    case Activation::sigmoid:
      return builder_.add("Sigmoid", name + "/sigmoid", {tensor});
    case Activation::relu6: {
      const std::vector<float> bounds{0.0f, 6.0f};
      const std::string least =
          builder_.constant(name + "/least", std::vector<int64_t>{}, std::span(bounds).first(1));
      const std::string most =
          builder_.constant(name + "/most", std::vector<int64_t>{}, std::span(bounds).last(1));
      return builder_.add("Clip", name + "/relu6", {tensor, least, most});
    }
    case Activation::softmax:  // over rows: ActivationLayer ensures it
      return builder_.add("Softmax", name + "/softmax", {tensor}, {{"axis", int64_t{1}}});
    case Activation::linear:
      break;
  }
  return tensor;
}

std::vector<Attribute> LayerExporter::window_attributes(const Node& node,
                                                        const compute::Window& window) {
  // The graph has been built, so the window fits.
  const auto g = std::get<compute::Geometry>(geometry_of(window, shape_of(node.inputs[0])));
  std::vector<int64_t> before, after;
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t reach = (g.output[axis] - 1) * g.strides[axis] + g.size[axis];
    before.push_back(g.before[axis]);
    after.push_back(std::max<int64_t>(0, reach - g.input[axis] - g.before[axis]));
  }
  return {{"kernel_shape", std::vector<int64_t>{g.size[0], g.size[1]}},
          {"strides", std::vector<int64_t>{g.strides[0], g.strides[1]}},
          {"pads", std::vector<int64_t>{before[0], before[1], after[0], after[1]}}};
}

void LayerExporter::add_convolution(const Node& node, const compute::Window& window,
                                    Activation activation, bool depthwise) {
  std::vector<std::string> inputs{image(node.inputs[0]), transposed_kernel(node, depthwise)};
  if (node.parameters.size() > 1) inputs.push_back(parameter(node.parameters[1]));
  std::vector<Attribute> attributes = window_attributes(node, window);
  if (depthwise) attributes.emplace_back("group", graph_.layout.find(node.parameters[0]).shape[2]);
  forms_of(node.output).image =
      activated(builder_.add("Conv", node.name, inputs, attributes), node.name, activation);
}

void LayerExporter::add_pool(const Node& node, const char* operation, const compute::Window& window,
                             std::vector<Attribute> more) {
  for (Attribute& attribute : window_attributes(node, window)) more.push_back(std::move(attribute));
  forms_of(node.output).image = builder_.add(operation, node.name, {image(node.inputs[0])}, more);
}

void LayerExporter::join(const Node& node, const char* operation, bool concatenates) {
  const bool images = are_images(node);
  std::vector<std::string> inputs;
  for (const int input : node.inputs) inputs.push_back(images ? image(input) : features(input));
  std::vector<Attribute> attributes;
  if (concatenates) attributes.emplace_back("axis", images ? int64_t{1} : int64_t{-1});
  std::string joined = inputs[0];
  if (concatenates) {
    joined = builder_.add(operation, node.name, inputs, attributes);
  } else {
    for (size_t i = 1; i < inputs.size(); ++i)
      joined = builder_.add(operation, node.name, {joined, inputs[i]});
  }
  (images ? forms_of(node.output).image : forms_of(node.output).plain) = joined;
}

void LayerExporter::add(const Node& node, const compute::Dense& dense) {
  std::vector<std::string> inputs{rows(node.inputs[0]), parameter(node.parameters[0])};
  if (node.parameters.size() > 1) inputs.push_back(parameter(node.parameters[1]));
  forms_of(node.output).plain =
      activated(builder_.add("Gemm", node.name, inputs), node.name, dense.activation);
}

void LayerExporter::add(const Node& node, const compute::ActivationLayer& layer) {
  const int input = node.inputs[0];
  if (layer.activation == Activation::softmax) {  // over the whole sample
    const std::string softmax = activated(rows(input), node.name, layer.activation);
    const std::vector<int64_t>& shape = shape_of(node.output);
    forms_of(node.output).plain = shape.size() == 1 ? softmax : reshaped(softmax, node.name, shape);
  } else if (are_images(node)) {
    forms_of(node.output).image = activated(image(input), node.name, layer.activation);
  } else {
    forms_of(node.output).plain = activated(plain(input), node.name, layer.activation);
  }
}

// Outside of training, dropout passes its input on.
void LayerExporter::add(const Node& node, const compute::Dropout&) {
  forms_of(node.output) = forms_of(node.inputs[0]);
}

void LayerExporter::add(const Node& node, const compute::BatchNormalization& normalization) {
  const int input = node.inputs[0];
  const std::vector<int64_t>& shape = shape_of(input);
  const auto normalized = [&](const std::string& tensor) {
    std::vector<std::string> inputs{tensor};
    for (const std::string& name : node.parameters) inputs.push_back(parameter(name));
    return builder_.add("BatchNormalization", node.name, inputs,
                        {{"epsilon", normalization.epsilon}});
  };
  Forms& to = forms_of(node.output);
  if (shape.size() == 3) {
    to.image = normalized(image(input));
    return;
  }
  if (shape.size() == 1) {
    to.plain = normalized(plain(input));
    return;
  }
  // The features are all elements of a sample of two axes, else the last axis.
  const std::string flat = shape.size() == 2
                               ? rows(input)
                               : reshaped(plain(input), node.name + "/features", {shape.back()});
  to.plain = reshaped(normalized(flat), node.name + "/sample", shape);
}

void LayerExporter::add(const Node& node, const compute::Add&) {
  join(node, "Add", false);
}

void LayerExporter::add(const Node& node, const compute::Concatenate&) {
  join(node, "Concat", true);
}

void LayerExporter::add(const Node& node, const compute::Conv2d& convolution) {
  add_convolution(node, convolution.window, convolution.activation, false);
}

void LayerExporter::add(const Node& node, const compute::DepthwiseConv2d& convolution) {
  add_convolution(node, convolution.window, convolution.activation, true);
}

void LayerExporter::add(const Node& node, const compute::MaxPool& pool) {
  add_pool(node, "MaxPool", pool.window, {});
}

// Zeros around the image do not count.
void LayerExporter::add(const Node& node, const compute::AveragePool& pool) {
  add_pool(node, "AveragePool", pool.window, {{"count_include_pad", int64_t{0}}});
}

void LayerExporter::add(const Node& node, const compute::GlobalAveragePool&) {
  const std::string mean = builder_.add("GlobalAveragePool", node.name, {image(node.inputs[0])});
  forms_of(node.output).plain =
      builder_.add("Flatten", node.name + "/rows", {mean}, {{"axis", int64_t{1}}});
}

void LayerExporter::add(const Node& node, const compute::Flatten&) {
  forms_of(node.output).plain = rows(node.inputs[0]);
}

void LayerExporter::add(const Node& node, const compute::Reshape&) {
  forms_of(node.output).plain = reshaped(plain(node.inputs[0]), node.name, shape_of(node.output));
}

}  // namespace muster::onnx
