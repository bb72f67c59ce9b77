// Replays PyTorch's computations; tests/fixtures/pytorch/README.md describes the files.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/unit/trainer/compute/support.h"
#include "trainer/compute/initialize.h"
#include "trainer/compute/models/catalogue.h"
#include "trainer/data/sources/source.h"
#include "trainer/detection/objects.h"

namespace muster::compute::testing {
namespace {

using Json = nlohmann::json;

const std::filesystem::path kSource = MUSTER_SOURCE_DIR;

std::vector<std::string> fixtures() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(kSource / "tests/fixtures/pytorch")) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Activation activation_of(const std::string& name) {
  if (name == "relu") return Activation::relu;
  if (name == "relu6") return Activation::relu6;
  if (name == "sigmoid") return Activation::sigmoid;
  if (name == "softmax") return Activation::softmax;
  return Activation::linear;
}

Window window_of(const Json& json) {
  Window window;
  window.size = json.at("size").get<std::array<int64_t, 2>>();
  window.strides = json.at("strides").get<std::array<int64_t, 2>>();
  window.padding = json.at("padding") == "same" ? Padding::same : Padding::valid;
  return window;
}

LayerKind kind_of(const Json& json) {
  const std::string kind = json.at("kind");
  if (kind == "conv2d") {
    Conv2d layer;
    layer.filters = json.at("filters");
    layer.window = window_of(json);
    layer.activation = activation_of(json.at("activation"));
    layer.use_bias = json.value("use_bias", true);
    return layer;
  }
  if (kind == "depthwiseConv2d") {
    DepthwiseConv2d layer;
    layer.window = window_of(json);
    layer.activation = activation_of(json.at("activation"));
    layer.use_bias = json.value("use_bias", true);
    return layer;
  }
  if (kind == "maxPool") return MaxPool{window_of(json)};
  if (kind == "averagePool") return AveragePool{window_of(json)};
  if (kind == "globalAveragePool") return GlobalAveragePool{};
  if (kind == "dense") {
    Dense dense;
    dense.units = json.at("units");
    dense.activation = activation_of(json.value("activation", "linear"));
    dense.use_bias = json.value("use_bias", true);
    return dense;
  }
  if (kind == "activation") return ActivationLayer{activation_of(json.at("activation"))};
  if (kind == "batchNormalization") {
    return BatchNormalization{json.at("momentum"), json.at("epsilon")};
  }
  if (kind == "add") return Add{};
  if (kind == "concatenate") return Concatenate{};
  if (kind == "flatten") return Flatten{};
  throw std::runtime_error("a fixture has a layer of kind " + kind);
}

LossKind loss_of(const Json& json) {
  const std::string name = json.at("loss");
  if (name == "mean_squared_error") return MeanSquaredError{};
  if (name == "huber") return Huber{json.at("delta")};
  if (name == "binary_cross_entropy") return BinaryCrossEntropy{json.at("positive_weight")};
  if (name == "poisson") return Poisson{};
  if (name == "quantile") return Quantile{{json.at("quantile").get<float>()}};
  if (name != "softmax_cross_entropy") throw std::runtime_error("a fixture has a loss " + name);
  return SoftmaxCrossEntropy{};
}

ModelSpec model_of(const Json& json) {
  ModelSpec spec;
  if (json.contains("catalogue")) {
    const Json& settings = json["catalogue"];
    ModelOptions options;
    options.classes = settings.at("classes");
    options.depth_multiplier = settings.at("depth_multiplier");
    spec = find_model(json.at("name").get<std::string>(), options).value();
    spec.input_shape = json.at("input_shape").get<std::vector<int64_t>>();
    return spec;
  }
  spec.name = json.at("name");
  spec.input_shape = json.at("input_shape").get<std::vector<int64_t>>();
  spec.label_count = json.at("label_count");
  spec.loss = loss_of(json);
  for (const Json& entry : json.at("layers")) {
    LayerSpec layer{entry.at("name"), kind_of(entry), {}, true};
    if (entry.contains("inputs")) layer.inputs = entry["inputs"].get<std::vector<std::string>>();
    spec.layers.push_back(layer);
  }
  return spec;
}

OptimizerSpec optimizer_of(const Json& json) {
  const std::string name = json.at("name");
  if (name == "sgd") return Sgd{json.value("momentum", 0.0f), json.value("nesterov", false)};
  if (name == "adam") return Adam{json.at("beta1"), json.at("beta2"), json.at("epsilon")};
  if (name == "rmsprop") return RmsProp{json.at("decay"), json.at("momentum"), json.at("epsilon")};
  if (name == "lamb")
    return Lamb{json.at("beta1"), json.at("beta2"), json.at("epsilon"), json.at("weight_decay")};
  if (name != "adamw") throw std::runtime_error("a fixture has an optimizer named " + name);
  return AdamW{json.at("beta1"), json.at("beta2"), json.at("epsilon"), json.at("weight_decay")};
}

void set_parameters(const Json& json, Engine& engine) {
  HostView parameters(engine.parameters());
  initialize_parameters(engine.layout(), 1, parameters.values());  // moving statistics
  for (const Json& entry : json.at("parameters")) {
    const ParameterTensor& tensor = engine.layout().find(entry.at("name"));
    ASSERT_EQ(entry.at("shape").get<std::vector<int64_t>>(), tensor.shape) << tensor.name;
    for (size_t i = 0; i < tensor.count; ++i) {
      const float limit = static_cast<float>(entry.value("limit", 0.0));
      parameters.values()[tensor.offset + i] = entry.contains("constant")
                                                   ? entry["constant"].get<float>()
                                                   : fixture_value(entry.at("number"), i, limit);
    }
  }
  parameters.store();
}

size_t steps_of(const Json& json) {
  return json.value("steps", 10);
}

// All batches, one after the other.
struct Samples {
  explicit Samples(const Json& json) : width(1) {
    for (const size_t axis : json.at("input_shape")) width *= axis;
    const size_t count = steps_of(json) * json.at("batch_size").get<size_t>();
    size_t classes = json.at("label_count");
    if (json.at("data").contains("objects")) {
      generate(count, 0);
      classes = detection::ObjectList::floats(detection::ObjectList::kMost);
      add_blocks(json.at("input_shape"), json["data"].at("block"));
      read_objects(json["data"]["objects"], classes);
    } else if (json.at("data").at("source") == "mnist") {
      read_mnist(count);
    } else {
      generate(count, classes);
      round_targets(json.at("data").value("targets", ""));
    }
    for (size_t i = 0; i < count; ++i) {
      rows.push_back(&values[i * width]);
      if (!targets.empty()) target_rows.push_back(&targets[i * classes]);
    }
  }

  void read_mnist(size_t count) {
    spec::DataSource source;
    source.kind = spec::IdxSource{{{kSource / "examples/data/mnist/train-images-idx3-ubyte.gz",
                                    kSource / "examples/data/mnist/train-labels-idx1-ubyte.gz"}}};
    source.take = static_cast<int64_t>(count);
    const auto dataset = data::open_dataset(source);
    for (size_t i = 0; i < count; ++i) {
      const auto* bytes = reinterpret_cast<const uint8_t*>(&dataset->stored()[i * width]);
      for (size_t e = 0; e < width; ++e) values.push_back(float(bytes[e]) * (1.0f / 255.0f));
      labels.push_back(dataset->label(i));
    }
  }

  void generate(size_t count, size_t classes) {
    for (size_t i = 0; i < count * width; ++i) values.push_back(fixture_value(1000, i, 1.0f));
    for (size_t i = 0; i < count && classes > 0; ++i) {
      labels.push_back(static_cast<int32_t>((fixture_bits(1001, i) >> 40) % classes));
    }
    for (size_t i = 0; i < count * classes; ++i) targets.push_back(fixture_value(1002, i, 1.0f));
  }

  void round_targets(const std::string& kind) {
    for (float& t : targets)
      t = kind == "binary" ? float(t > 0) : kind == "counts" ? std::floor(2 * (t + 1)) : t;
  }

  // Makes the noise a quarter, and adds a colour for each block of pixels.
  void add_blocks(const Json& shape, size_t block) {
    const size_t height = shape[0], image_width = shape[1], channels = shape[2];
    const size_t high = (height + block - 1) / block, wide = (image_width + block - 1) / block;
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t sample = i / width, y = i % width / (image_width * channels);
      const size_t x = i / channels % image_width, channel = i % channels;
      const size_t at = ((sample * high + y / block) * wide + x / block) * channels + channel;
      values[i] = values[i] * 0.25f + fixture_value(1003, at, 1.0f);
    }
  }

  void read_objects(const Json& images, size_t floats) {
    targets.resize(images.size() * floats);
    for (size_t i = 0; i < images.size(); ++i) {
      std::vector<detection::Object> objects;
      for (const Json& one : images[i]) {
        detection::Object& object = objects.emplace_back();
        object.box = {one[0], one[1], one[2], one[3]};
        object.label = one[4];
      }
      detection::write_objects(160, 160, objects, std::span(targets).subspan(i * floats, floats));
    }
  }

  Batch batch(size_t step, size_t rows_in_batch) const {
    Batch batch;
    batch.rows = static_cast<int64_t>(rows_in_batch);
    batch.features = std::span(rows).subspan(step * rows_in_batch, rows_in_batch);
    if (!labels.empty())
      batch.labels = std::span(labels).subspan(step * rows_in_batch, rows_in_batch);
    if (!targets.empty()) {
      batch.targets = std::span(target_rows).subspan(step * rows_in_batch, rows_in_batch);
    }
    return batch;
  }

  size_t width;
  std::vector<float> values, targets;
  std::vector<int32_t> labels;
  std::vector<const void*> rows;
  std::vector<const float*> target_rows;
};

void compare_gradients(const Json& json, Engine& engine, const Batch& batch) {
  const double weight = engine.compute_gradients(batch).weight;
  const double tolerance = json.value("tolerance", 1e-5);
  for (const Json& entry : json.at("gradients")) {
    const ParameterTensor& tensor = engine.layout().find(entry.at("name"));
    std::vector<float> g(tensor.count);
    engine.gradients().read(tensor.range(), g).wait();
    double squares = 0;
    for (float x : g) squares += std::pow(double(x) / weight, 2);
    const double norm = entry.at("norm");
    // A gradient that is zero except for rounding (of a bias before a normalization) has no
    // significant digits.
    EXPECT_NEAR(std::sqrt(squares), norm, tolerance * norm + 1e-7) << tensor.name;
    const auto first = entry.at("first").get<std::vector<double>>();
    for (size_t i = 0; i < first.size(); ++i) {
      EXPECT_NEAR(double(g[i]) / weight, first[i], tolerance * norm + 1e-7)
          << tensor.name << " [" << i << "]";
    }
  }
}

// Returns the names of this CPU's instruction sets, and of the other backends.
std::vector<std::string> sets_and_backends() {
  std::vector<std::string> names = instruction_sets();
  for (const Backend backend : backends())
    if (backend != Backend::cpu) names.push_back(name_of(backend));
  return names;
}

std::unique_ptr<Engine> engine_of(const std::string& set_or_backend, const ModelSpec& model,
                                  int64_t max_rows) {
  for (const Backend backend : backends())
    if (name_of(backend) == set_or_backend) return engine(backend, model, max_rows, 2);
  return cpu_engine(model, max_rows, 2, set_or_backend);
}

class PyTorch : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  void SetUp() override {
    if (std::get<1>(GetParam()) == name_of(Backend::gpu) && is_missing(Backend::gpu))
      GTEST_SKIP() << kNoGpu;
  }
};

TEST_P(PyTorch, ComputesTheSameGradientsAndFirstLosses) {
  const auto& [name, set] = GetParam();
  const Json json =
      Json::parse(std::ifstream(kSource / "tests/fixtures/pytorch" / (name + ".json")));
  const size_t rows = json.at("batch_size");
  const Samples samples(json);
  const auto max_rows = static_cast<int64_t>(rows);
  const std::unique_ptr<Engine> made = engine_of(set, model_of(json), max_rows);
  ASSERT_NO_FATAL_FAILURE(set_parameters(json, *made));
  compare_gradients(json, *made, samples.batch(0, rows));
  const auto optimizer = Optimizer::create(optimizer_of(json.at("optimizer")), made->layout());
  const auto storage = allocate_slots(*made, *optimizer);
  std::vector<Memory*> slots;
  for (const auto& slot : storage) slots.push_back(slot.get());
  UpdateArguments update;
  update.learning_rate = json.at("optimizer").at("learning_rate");
  const double tolerance = json.value("tolerance", 1e-5);
  for (size_t step = 0; step < steps_of(json); ++step) {
    update.t = step + 1;
    const LossSums sums = made->train(samples.batch(step, rows), *optimizer, update, slots);
    const double loss = sums.loss / sums.weight;
    const double float32 = json.at("losses")[step], float64 = json.at("losses_float64")[step];
    EXPECT_NEAR(loss, float32, tolerance * float32) << "step " << step;
    EXPECT_NEAR(loss, float64, tolerance * float64) << "step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(EveryFixture, PyTorch,
                         ::testing::Combine(::testing::ValuesIn(fixtures()),
                                            ::testing::ValuesIn(sets_and_backends())),
                         [](const auto& info) {
                           std::string name =
                               std::get<0>(info.param) + "_" + std::get<1>(info.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(PyTorchFixtures, OfTheModelsInTheFiguresAreThere) {
  const std::vector<std::string> names = fixtures();
  for (const char* name : {"mnist-mlp", "mnist-sigmoid", "mnist-cnn", "images", "normalized",
                           "ssd-mobilenet-v1", "linear-regression", "branches"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
}

}  // namespace
}  // namespace muster::compute::testing
