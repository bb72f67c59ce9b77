// The bits of a training are the same from every compiler: networks with each kind of layer, loss
// and optimizer have the digests of tests/fixtures/digests/digests.json.

#include "common/digest.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <set>

#include "common/documents/json.h"
#include "common/system/file.h"
#include "tests/unit/trainer/compute/support.h"
#include "trainer/compute/layers/layer.h"
#include "trainer/compute/models/ssd.h"
#include "trainer/detection/objects.h"
#include "trainer/spec/schema.h"

namespace muster::compute::testing {
namespace {

constexpr int64_t kRows = 5;

// A training of three steps.
struct Part {
  std::string name;
  ModelSpec model;
  OptimizerSpec optimizer;
  Precision precision = Precision::float32;
  double density = 0.7;  // of the features; below 0.6 dense layers skip their zeros
  ElementType features = ElementType::float32;
  bool apart = false;  // gradients first, then the update: as with parameter servers
};

constexpr auto kInitializers = std::to_array<InitializerKind>(
    {InitializerKind::glorot_uniform, InitializerKind::he_normal, InitializerKind::normal,
     InitializerKind::truncated_normal, InitializerKind::uniform, InitializerKind::zeros,
     InitializerKind::constant});

LayerSpec convolution(const std::string& name, int64_t filters, int64_t size, int64_t stride,
                      Activation activation, std::vector<std::string> inputs = {}) {
  Conv2d kind;
  kind.filters = filters;
  kind.window = {{size, size}, {stride, stride}, Padding::same};
  kind.activation = activation;
  kind.use_bias = activation != Activation::linear;
  return layer(name, kind, std::move(inputs));
}

LayerSpec depthwise(const std::string& name, int64_t stride, bool use_bias) {
  DepthwiseConv2d kind;
  kind.use_bias = use_bias;
  kind.window = {{3, 3}, {stride, stride}, Padding::same};
  return layer(name, kind);
}

// Every kind of layer and activation: normalized values that have another reader, convolutions by
// Winograd and without, fused with their normalization and not, and a layer that is not trained.
ModelSpec all_layers() {
  const Window two{{2, 2}, {2, 2}, Padding::valid};
  ModelSpec spec = model(1,
                         {convolution("first", 16, 3, 1, Activation::linear),
                          layer("first_norm", BatchNormalization{}),
                          layer("first_relu", ActivationLayer{Activation::relu6}),
                          convolution("a", 19, 3, 1, Activation::linear),
                          layer("a_norm", BatchNormalization{}),
                          layer("a_relu", ActivationLayer{Activation::relu6}),
                          depthwise("b", 1, false),
                          layer("b_norm", BatchNormalization{}),
                          layer("b_relu", ActivationLayer{Activation::relu}),
                          convolution("c", 19, 1, 1, Activation::sigmoid),
                          layer("sum", Add{}, {"a_relu", "c"}),
                          convolution("d", 18, 3, 1, Activation::relu, {"sum"}),
                          depthwise("e", 2, true),
                          layer("largest", MaxPool{two}, {"d"}),
                          layer("mean", AveragePool{two}, {"sum"}),
                          layer("both", Concatenate{}, {"largest", "mean", "e"}),
                          layer("lines", Reshape{{-1, 55}}),
                          layer("squares", Reshape{{4, 4, 55}}),
                          convolution("f", 7, 2, 2, Activation::relu6),
                          layer("flat", Flatten{}),
                          layer("dropped", Dropout{0.25f}),
                          dense("g", 33, Activation::relu),
                          layer("g_norm", BatchNormalization{}),
                          dense("h", 33, Activation::softmax, {"g_norm"}, false),
                          layer("place", GlobalAveragePool{}, {"both"}),
                          layer("end", Concatenate{}, {"g_norm", "h", "place"}),
                          dense("y", 4, Activation::linear)},
                         4);
  spec.input_shape = {8, 8, 3};
  return spec;
}

// Each kind of initializer, side by side.
ModelSpec all_initializers() {
  std::vector<LayerSpec> layers;
  std::vector<std::string> names;
  for (const InitializerKind kind : kInitializers) {
    Dense layer;
    layer.units = 9;
    layer.kernel_initializer = {kind, 0.3f};
    names.push_back("initialized" + std::to_string(names.size()));
    layers.push_back({names.back(), layer, {"input"}});
  }
  layers.push_back(layer("all", Concatenate{}, names));
  layers.push_back(dense("y", 3, Activation::linear));
  return model(21, std::move(layers), 3);
}

ModelSpec dense_layers(const LossKind& loss) {
  return model(50,
               {dense("a", 40, Activation::relu), dense("b", 35, Activation::sigmoid),
                dense("y", 7, Activation::linear)},
               7, loss);
}

ModelSpec detector(detection::ClassificationLoss::Kind kind) {
  ModelSpec spec =
      ssd_mobilenet({.classes = 3, .depth_multiplier = 0.25f, .classification = {.kind = kind}});
  spec.input_shape = {64, 64, 3};
  return spec;
}

// With all that an optimizer may have beside its formula.
OptimizerSpec full(OptimizerSpec optimizer) {
  optimizer.l2 = L2{0.01f, ""};
  optimizer.clip_value = 0.5f;
  if (!std::holds_alternative<Lamb>(optimizer.kind)) optimizer.clip_norm = 1.0f;
  optimizer.average = 0.9;
  return optimizer;
}

std::vector<Part> parts() {
  const ModelSpec dense = dense_layers(SoftmaxCrossEntropy{});
  using Detector = detection::ClassificationLoss::Kind;
  std::vector<Part> all{
      {"layers", all_layers(), Adam{}},
      {"layers in bfloat16", all_layers(), Adam{}, Precision::bfloat16},
      {"mean squared error", dense_layers(MeanSquaredError{}), Adam{}},
      {"huber", dense_layers(Huber{0.5f}), Adam{}},
      {"binary cross entropy", dense_layers(BinaryCrossEntropy{2, 0.4f}), Adam{}},
      {"poisson", dense_layers(Poisson{}), Adam{}},
      {"quantile", dense_layers(Quantile{{0.8f}}), Adam{}},
      {"detector, sigmoid", detector(Detector::sigmoid), RmsProp{0.9f, 0.9f, 1.0f}},
      {"detector, softmax, in bfloat16", detector(Detector::softmax), RmsProp{0.9f, 0.9f, 1.0f},
       Precision::bfloat16},
      {"initializers", all_initializers(), Adam{}},
  };
  Part& sparse = all.emplace_back(Part{"zeros", dense, Adam{}});
  sparse.density = 0.2;
  Part& bytes = all.emplace_back(Part{"bytes", all_layers(), Adam{}});
  bytes.features = ElementType::uint8;
  for (const auto& [name, whole] :
       {std::pair{"layers, apart", all_layers()}, {"dense, apart", dense}}) {
    Part& apart = all.emplace_back(Part{name, whole, full(Adam{})});
    apart.apart = true;
  }
  const std::vector<std::pair<std::string, OptimizerSpec>> optimizers{
      {"sgd", Sgd{}},
      {"momentum", Sgd{0.9f}},
      {"nesterov", Sgd{0.9f, true}},
      {"adam", Adam{}},
      {"adamw", AdamW{}},
      {"lamb", Lamb{}},
      {"rms_prop", RmsProp{0.9f, 0.5f, 1e-3f}}};
  for (const auto& [name, optimizer] : optimizers) {
    all.push_back({name, dense, optimizer});
    all.push_back({name + " with all", dense, full(optimizer)});
  }
  return all;
}

// The batch of a part; a detector's images have two objects each.
struct PartBatch {
  explicit PartBatch(const Part& part)
      : floats(kRows, *element_count(part.model.input_shape), part.model.label_count, part.density),
        type(part.features) {
    if (std::holds_alternative<SsdLoss>(part.model.loss)) {
      for (int64_t row = 0; row < kRows; ++row) {
        const float at = 0.1f * static_cast<float>(row);
        const auto width = static_cast<size_t>(floats.target_width);
        detection::write_objects(
            64, 64,
            std::vector<detection::Object>{{{at, at, at + 0.4f, at + 0.5f}, 1},
                                           {{0.5f, at, 0.9f, at + 0.3f}, 2}},
            std::span(floats.targets).subspan(static_cast<size_t>(row) * width, width));
      }
    }
    for (size_t i = 0; i < floats.values.size(); ++i)
      bytes.push_back(static_cast<uint8_t>(fixture_bits(8, i)));
    for (int64_t row = 0; row < kRows; ++row)
      byte_rows.push_back(&bytes[static_cast<size_t>(row * floats.width)]);
  }

  Batch first(int64_t rows) const {
    Batch batch = floats.first(rows);
    if (type == ElementType::float32) return batch;
    batch.type = type;
    batch.features = std::span(byte_rows).first(static_cast<size_t>(rows));
    batch.scale = 1 / 127.5f;
    batch.offset = -1;
    return batch;
  }

  OwnedBatch floats;
  ElementType type;
  std::vector<uint8_t> bytes;
  std::vector<const void*> byte_rows;
};

void update_apart(Engine& engine, const Optimizer& optimizer, UpdateArguments update,
                  const LossSums& sums, std::span<Memory* const> slots) {
  update.divide_by(sums);
  HostView parameters(engine.parameters());
  HostView gradients(engine.gradients());
  std::vector<HostView> views;
  views.reserve(slots.size());
  std::vector<std::span<float>> spans;
  for (Memory* slot : slots) spans.push_back(views.emplace_back(*slot).values());
  optimizer.apply({0, engine.layout().size()}, update, parameters.values(), gradients.values(),
                  spans);
  parameters.store();
  for (HostView& view : views) view.store();
}

std::string digest_of(const Part& part, const std::string& set) {
  // An optimizer takes the kernels that the variable names.
  setenv("MUSTER_INSTRUCTION_SET", set.c_str(), 1);
  const auto engine = cpu_engine(part.model, kRows, 1, set, part.precision);
  const auto optimizer = Optimizer::create(part.optimizer, engine->layout());
  unsetenv("MUSTER_INSTRUCTION_SET");
  initialize(*engine);
  const auto memories = allocate_slots(*engine, *optimizer);
  std::vector<Memory*> slots;
  for (const auto& memory : memories) slots.push_back(memory.get());
  const PartBatch batch(part);
  for (uint64_t t = 1; t <= 3; ++t) {
    UpdateArguments update;
    update.learning_rate = 0.01f;
    update.t = t;
    // The last step has fewer rows.
    const Batch rows = batch.first(t < 3 ? kRows : kRows - 2);
    if (part.apart) {
      update_apart(*engine, *optimizer, update, engine->compute_gradients(rows), slots);
    } else {
      engine->train(rows, *optimizer, update, slots);
    }
  }
  Sha256 digest;
  slots.push_back(&engine->parameters());
  for (const Memory* memory : slots) {
    const std::vector<float> floats = values(*memory);
    for (const float value : floats) EXPECT_TRUE(std::isfinite(value)) << part.name;
    digest.update(std::as_bytes(std::span(floats)));
  }
  return digest.finish().substr(0, 16);
}

std::vector<std::string> names_in(const Json& digests) {
  std::vector<std::string> names;
  for (const auto& [name, digest] : digests.items()) names.push_back(name);
  return names;
}

TEST(Digests, AreThoseOfEveryCompiler) {
  const std::string file = std::string(MUSTER_SOURCE_DIR) + "/tests/fixtures/digests/digests.json";
  const Json expected = Json::parse(read_file(file));
  Json found = expected;
  for (const std::string& set : instruction_sets()) {
    found[set] = Json::object();
    for (const Part& part : parts()) {
      found[set][part.name] = digest_of(part, set);
      EXPECT_EQ(member(member(expected, set), part.name), found[set][part.name])
          << set << ", " << part.name;
    }
    EXPECT_EQ(names_in(expected[set]), names_in(found[set])) << set;
  }
  if (!HasFailure()) return;
  const std::string renewed = std::string(MUSTER_BINARY_DIR) + "/digests.json";
  write_file_atomically(renewed, found.dump(2) + "\n");
  ADD_FAILURE() << "This build trains other weights than those that " << file << " was made with. "
                << "Where the arithmetic was meant to change, and this CPU has every set of the "
                << "file: cp " << renewed << " " << file;
}

TEST(Digests, AreOfEveryKindOfLayerLossAndOptimizer) {
  std::set<size_t> layers, losses, optimizers;
  std::set<Activation> activations;
  for (const Part& part : parts()) {
    for (const LayerSpec& layer : part.model.layers) {
      layers.insert(layer.kind.index());
      if (const auto* dense = std::get_if<Dense>(&layer.kind))
        activations.insert(dense->activation);
      if (const auto* image = std::get_if<Conv2d>(&layer.kind))
        activations.insert(image->activation);
    }
    losses.insert(part.model.loss.index());
    optimizers.insert(part.optimizer.kind.index());
  }
  EXPECT_EQ(layers.size(), std::variant_size_v<LayerKind>);
  EXPECT_EQ(losses.size(), std::variant_size_v<LossKind>);
  EXPECT_EQ(optimizers.size(), std::variant_size_v<OptimizerKind>);
  const Json& fields = spec::training_schema()["properties"]["model"]["properties"]["layers"]
                                              ["items"]["properties"]["dense"]["properties"];
  EXPECT_EQ(activations.size(), fields["activation"]["enum"].size());
  EXPECT_EQ(kInitializers.size(), fields["kernelInitializer"]["properties"]["name"]["enum"].size());
}

}  // namespace
}  // namespace muster::compute::testing
