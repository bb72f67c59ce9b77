// Writes models with random weights for tests/python/check_onnx.py, each as a trained job leaves
// it:
//   write_models FOLDER   FOLDER/<name>/model/model.safetensors and model.onnx

#include <cmath>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>

#include "trainer/checkpoint/store/checkpoint.h"
#include "trainer/compute/engine.h"
#include "trainer/compute/graph.h"
#include "trainer/loop/training.h"
#include "trainer/onnx/export.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

struct Case {
  const char* name;
  const char* model;   // YAML
  const char* source;  // with as much as is needed, and no files
};

// Every kind of layer, with images of other sizes than powers of two.
constexpr const char* kLayers = R"({layers: [
  {conv2d: {name: first, filters: 6, size: [3, 5], strides: [2, 1], padding: same, activation: relu}},
  {batchNormalization: {}},
  {maxPool: {name: most, size: [3], strides: [2], padding: same}},
  {depthwiseConv2d: {name: each, size: [2, 3], padding: same, activation: sigmoid}},
  {add: {name: sum, inputs: [most, each, most]}},
  {activation: {function: relu6}},
  {averagePool: {name: average, size: [3, 2], strides: [2, 1], padding: same}},
  {conv2d: {name: point, filters: 4, size: [1], strides: [2], padding: same, inputs: [average]}},
  {conv2d: {name: other, filters: 5, size: [1], strides: [2], padding: same, useBias: false,
            inputs: [average]}},
  {concatenate: {name: both, inputs: [point, other]}},
  {dropout: {}},
  {activation: {function: linear}},
  {maxPool: {name: small, size: [2], strides: [1]}},
  {globalAveragePool: {name: mean, inputs: [both]}},
  {batchNormalization: {name: of_means}},
  {reshape: {name: row, shape: [3, -1], inputs: [small]}},
  {batchNormalization: {name: of_rows}},
  {activation: {name: shares, function: softmax}},
  {reshape: {name: block, shape: [1, 3, -1, 3]}},
  {batchNormalization: {name: of_blocks}},
  {flatten: {name: flat}},
  {concatenate: {name: all, inputs: [flat, of_means, shares]}},
  {dense: {name: hidden, units: 7, activation: softmax}},
  {dense: {name: logits, units: 5, activation: softmax, useBias: false}}]})";

constexpr Case kCases[] = {
    {"mnist-mlp", "{name: mnist-mlp}",
     "imageFolder: {path: none, imageSize: [28, 28], channels: 1}"},
    {"mnist-cnn", "{name: mnist-cnn}",
     "imageFolder: {path: none, imageSize: [28, 28], channels: 1}"},
    {"mobilenet-v1", "{name: mobilenet-v1, classes: 7, depthMultiplier: 0.25}",
     "imageFolder: {path: none, imageSize: [65, 48], scale: 0.00784313725, offset: -1}"},
    {"ssd-mobilenet-v1", "{name: ssd-mobilenet-v1, classes: 3, depthMultiplier: 0.1}",
     "coco: {annotations: none, folder: none, imageSize: [96, 80], scale: 0.00784313725, offset: "
     "-1}"},
    {"ssd-mobilenet-v1-softmax",
     "{name: ssd-mobilenet-v1, classes: 3, depthMultiplier: 0.1, classificationLoss: softmax, "
     "logitScale: 2}",
     "coco: {annotations: none, folder: none, imageSize: [64, 64], scale: 0.00784313725, offset: "
     "-1}"},
    {"layers", kLayers, "imageFolder: {path: none, imageSize: [21, 26], scale: 0.01}"},
};

loop::Training training_of(const Case& one) {
  const Document document = Document::parse(
      std::string("model: ") + one.model + "\ndata: {train: {" + one.source + "}}\nsteps: 1\n",
      one.name);
  loop::Training training = loop::Training::from_json(document.value(), one.name);
  if (training.spec.model.input_shape.empty())
    training.spec.model.input_shape = training.spec.data.train.images()->shape();
  loop::take_label_count_from_layers(training.spec.model);
  return training;
}

// Returns weights by which each layer's output is about as large as its input, and biases and
// numbers of normalization that matter.
std::vector<float> random_parameters(const compute::ParameterLayout& layout) {
  std::vector<float> values(layout.size());
  std::mt19937 random(1);
  for (const compute::ParameterTensor& tensor : layout.tensors()) {
    const auto ends_with = [&](const char* end) { return tensor.name.ends_with(end); };
    const bool is_factor = ends_with("/gamma") || ends_with("/moving_variance");
    const auto inputs = static_cast<float>(tensor.count) / static_cast<float>(tensor.shape.back());
    const bool depthwise = tensor.shape.back() == 1 && tensor.shape.size() == 4;
    const float fan = depthwise ? inputs / static_cast<float>(tensor.shape[2]) : inputs;
    const float deviation = ends_with("/kernel") ? std::sqrt(2.0f / fan) : 0.15f;
    std::normal_distribution<float> normal(0.0f, deviation);
    for (size_t i = 0; i < tensor.count; ++i)
      values[tensor.offset + i] = is_factor ? std::abs(normal(random)) + 0.8f : normal(random);
  }
  return values;
}

void write(const fs::path& folder, const Case& one) {
  const loop::Training training = training_of(one);
  const compute::ModelSpec& model = training.spec.model;
  const spec::ImageSettings& images = *training.spec.data.train.images();
  data::SampleFormat samples{images.shape(),
                             compute::ElementType::uint8,
                             images.scale,
                             images.offset,
                             {"first", "second"}};
  const compute::ParameterLayout layout = compute::make_layout(model);
  const std::vector<float> parameters = random_parameters(layout);
  checkpoint::export_model(folder / one.name, layout, parameters, training.json,
                           data::to_json(samples));
  onnx::export_onnx(folder / one.name, model, parameters, samples);
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::cerr << "usage: write_models FOLDER\n";
    return 64;
  }
  for (const muster::Case& one : muster::kCases) muster::write(argv[1], one);
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 65;
}
