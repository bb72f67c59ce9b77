#include "trainer/compute/models/catalogue.h"

#include "trainer/compute/models/mobilenet.h"
#include "trainer/compute/models/ssd.h"

namespace muster::compute {

namespace {

LayerSpec dense(std::string name, int64_t units, Activation activation, Initializer initializer) {
  Dense layer;
  layer.units = units;
  layer.activation = activation;
  layer.kernel_initializer = initializer;
  return {std::move(name), layer, {}, true};
}

ModelSpec mnist_mlp() {
  const Initializer glorot{InitializerKind::glorot_uniform, 1.0f};
  return {"mnist-mlp",
          {28, 28},
          10,
          {dense("hidden_1", 256, Activation::relu, glorot),
           dense("hidden_2", 256, Activation::relu, glorot),
           dense("logits", 10, Activation::linear, glorot)},
          SoftmaxCrossEntropy{}};
}

ModelSpec mnist_sigmoid() {
  const Initializer unit_normal{InitializerKind::normal, 1.0f};
  return {"mnist-sigmoid",
          {28, 28},
          10,
          {dense("hidden_1", 100, Activation::sigmoid, unit_normal),
           dense("logits", 10, Activation::linear, unit_normal)},
          SoftmaxCrossEntropy{}};
}

LayerSpec convolution(std::string name, int64_t filters, Window window, Activation activation) {
  Conv2d layer;
  layer.filters = filters;
  layer.window = window;
  layer.activation = activation;
  return {std::move(name), layer, {}, true};
}

ModelSpec mnist_cnn() {
  const Initializer glorot{InitializerKind::glorot_uniform, 1.0f};
  const Window three{{3, 3}, {1, 1}, Padding::valid}, half{{2, 2}, {2, 2}, Padding::valid};
  return {"mnist-cnn",
          {28, 28},
          10,
          {convolution("convolution_1", 32, three, Activation::relu),
           convolution("convolution_2", 64, three, Activation::relu),
           {"pool", MaxPool{half}, {}, true},
           {"dropout_1", Dropout{0.25f}, {}, true},
           dense("hidden", 128, Activation::relu, glorot),
           {"dropout_2", Dropout{0.5f}, {}, true},
           dense("logits", 10, Activation::linear, glorot)},
          SoftmaxCrossEntropy{}};
}

ModelSpec linear_regression() {
  return {"linear-regression",
          {1},
          1,
          {dense("linear", 1, Activation::linear, {InitializerKind::zeros, 0.0f})},
          MeanSquaredError{}};
}

// Lets the data decide the size of images.
ModelSpec of_any_size(ModelSpec model) {
  model.input_shape.clear();
  return model;
}

ModelSpec mobilenet_of(const ModelOptions& options) {
  MobileNetOptions settings;
  settings.depth_multiplier = options.depth_multiplier.value_or(settings.depth_multiplier);
  settings.normalization_momentum =
      options.normalization_momentum.value_or(settings.normalization_momentum);
  return of_any_size(mobilenet(settings, options.classes.value_or(1000)));
}

ModelSpec ssd_of(const ModelOptions& options) {
  SsdOptions settings;
  settings.classes = options.classes.value_or(settings.classes);
  settings.depth_multiplier = options.depth_multiplier.value_or(settings.depth_multiplier);
  settings.normalization_momentum =
      options.normalization_momentum.value_or(settings.normalization_momentum);
  settings.classification = options.classification;
  return of_any_size(ssd_mobilenet(settings));
}

}  // namespace

std::vector<std::string> model_names() {
  return {"mnist-mlp",    "mnist-sigmoid",    "mnist-cnn",
          "mobilenet-v1", "ssd-mobilenet-v1", "linear-regression"};
}

std::optional<ModelSpec> find_model(std::string_view name, const ModelOptions& options) {
  if (name == "mnist-mlp") return mnist_mlp();
  if (name == "mnist-sigmoid") return mnist_sigmoid();
  if (name == "mnist-cnn") return mnist_cnn();
  if (name == "mobilenet-v1") return mobilenet_of(options);
  if (name == "ssd-mobilenet-v1") return ssd_of(options);
  if (name == "linear-regression") return linear_regression();
  return std::nullopt;
}

// TF-Slim names a convolution "<scope>/weights" and its normalization "<scope>/BatchNorm/gamma".
std::vector<Rename> published_names(std::string_view model) {
  const bool classifier = model == "mobilenet-v1", detector = model == "ssd-mobilenet-v1";
  if (!classifier && !detector) return {};
  std::vector<Rename> steps = {{"^(FeatureExtractor/)?MobilenetV1/", ""},
                               {"/(depthwise_)?weights$", "/kernel"},
                               {"/biases$", "/bias"},
                               {"/BatchNorm/", "_normalization/"}};
  if (classifier) steps.push_back({"^Logits/Conv2d_1c_1x1/", "logits/"});
  if (detector) {
    steps.push_back({"^(BoxPredictor_\\d+)/BoxEncodingPredictor/", "\\1_boxes/"});
    steps.push_back({"^(BoxPredictor_\\d+)/ClassPredictor/", "\\1_classes/"});
    for (Rename& step : names_of_any_depth()) steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace muster::compute
