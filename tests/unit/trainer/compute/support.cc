#include "tests/unit/trainer/compute/support.h"

#include "tests/unit/trainer/compute/cuda/simulated_gpu.h"
#include "tests/unit/trainer/compute/far_engine.h"
#include "trainer/compute/cuda/engine.h"
#include "trainer/compute/cuda/gpus.h"
#include "trainer/compute/initialize.h"
#include "trainer/compute/random.h"
#include "trainer/host/instruction_set.h"

namespace muster::compute::testing {

uint64_t fixture_bits(uint64_t number, uint64_t element) {
  return mix64((number << 32) + element);
}

float fixture_value(uint64_t number, uint64_t element, float limit) {
  const auto centred = static_cast<int64_t>(fixture_bits(number, element) >> 40) - (1 << 23);
  return static_cast<float>(centred) * 0x1p-23f * limit;
}

OwnedBatch::OwnedBatch(int64_t rows, int64_t features, int64_t label_count, double density,
                       uint64_t number)
    : width(features), target_width(label_count) {
  values.resize(static_cast<size_t>(rows * features));
  for (size_t i = 0; i < values.size(); ++i) {
    const bool zero = unit_uniform(fixture_bits(number + 1, i)) >= density;
    values[i] = zero ? 0.0f : fixture_value(number, i, 1.0f);
  }
  targets.resize(static_cast<size_t>(rows * label_count));
  for (size_t i = 0; i < targets.size(); ++i) targets[i] = fixture_value(number + 2, i, 1.0f);
  for (int64_t row = 0; row < rows; ++row) {
    labels.push_back(static_cast<int32_t>(fixture_bits(number + 3, uint64_t(row)) %
                                          static_cast<uint64_t>(label_count)));
    positions.push_back(static_cast<uint64_t>(row) + 1000);
    feature_rows.push_back(&values[static_cast<size_t>(row * features)]);
    target_rows.push_back(&targets[static_cast<size_t>(row * label_count)]);
  }
}

Batch OwnedBatch::first(int64_t rows) const {
  return part(0, rows);
}

Batch OwnedBatch::part(int64_t begin, int64_t rows) const {
  const size_t at = static_cast<size_t>(begin), count = static_cast<size_t>(rows);
  Batch batch;
  batch.rows = rows;
  batch.type = ElementType::float32;
  batch.features = std::span(feature_rows).subspan(at, count);
  batch.labels = std::span(labels).subspan(at, count);
  batch.targets = std::span(target_rows).subspan(at, count);
  batch.positions = std::span(positions).subspan(at, count);
  return batch;
}

LayerSpec dense(const std::string& name, int64_t units, Activation activation,
                std::vector<std::string> inputs, bool trainable) {
  Dense kind;
  kind.units = units;
  kind.activation = activation;
  return {name, kind, std::move(inputs), trainable};
}

LayerSpec layer(const std::string& name, LayerKind kind, std::vector<std::string> inputs,
                bool trainable) {
  return {name, kind, std::move(inputs), trainable};
}

ModelSpec model(int64_t inputs, std::vector<LayerSpec> layers, int64_t labels,
                const LossKind& loss) {
  ModelSpec spec;
  spec.name = "test";
  spec.input_shape = {inputs};
  spec.label_count = labels;
  spec.layers = std::move(layers);
  spec.loss = loss;
  return spec;
}

ModelSpec two_branches() {
  return model(23,
               {dense("stem", 33, Activation::relu, {"input"}),
                dense("left", 17, Activation::sigmoid, {"stem"}),
                layer("left_norm", BatchNormalization{}, {"left"}),
                dense("right", 17, Activation::linear, {"stem"}, false),
                layer("right_relu", ActivationLayer{Activation::relu}, {"right"}),
                layer("sum", Add{}, {"left_norm", "right_relu"}),
                layer("both", Concatenate{}, {"sum", "stem", "left"}),
                layer("frozen_norm", BatchNormalization{}, {"both"}, false),
                dense("logits", 5, Activation::linear, {"frozen_norm"})},
               5);
}

namespace {

EngineOptions options_of(int64_t max_rows, int threads) {
  EngineOptions options;
  options.max_rows = max_rows;
  options.threads = threads;
  // Tests share the machine with each other.
  options.exclusive = false;
  return options;
}

}  // namespace

const std::vector<Backend>& backends() {
  static const std::vector<Backend> all = [] {
    std::vector<Backend> some{Backend::cpu, Backend::far, Backend::simulated_gpu};
    if (cuda::kInThisBuild) some.push_back(Backend::gpu);
    return some;
  }();
  return all;
}

bool is_missing(Backend backend) {
  return backend == Backend::gpu && cuda::gpu_count() == 0;
}

std::string name_of(Backend backend) {
  switch (backend) {
    case Backend::cpu:
      return "Cpu";
    case Backend::far:
      return "Far";
    case Backend::simulated_gpu:
      return "SimulatedGpu";
    case Backend::gpu:
      return "Gpu";
  }
  return "";
}

std::unique_ptr<Engine> engine(Backend backend, const ModelSpec& model, int64_t max_rows,
                               int threads, Precision precision) {
  EngineOptions options = options_of(max_rows, threads);
  options.precision = precision;
  switch (backend) {
    case Backend::cpu:
      return Engine::create(model, options);
    case Backend::far:
      return make_far_engine(model, options);
    case Backend::gpu:
      options.device = {DeviceKind::cuda, 0};
      return Engine::create(model, options);
    case Backend::simulated_gpu:
      options.device = {DeviceKind::cuda, 0};
      return std::make_unique<cuda::CudaEngine>(build_graph(model), options, make_simulated_gpu(),
                                                cuda::CudaEngine::Limits{.stretch = 1});
  }
  return nullptr;
}

std::unique_ptr<cpu::CpuEngine> cpu_engine(const ModelSpec& model, int64_t max_rows, int threads,
                                           const std::string& instruction_set,
                                           Precision precision) {
  EngineOptions options = options_of(max_rows, threads);
  options.precision = precision;
  return std::make_unique<cpu::CpuEngine>(build_graph(model), options,
                                          cpu::kernels(host::instruction_set(instruction_set)));
}

void initialize(Engine& engine, uint64_t seed) {
  HostView parameters(engine.parameters());
  initialize_parameters(engine.layout(), seed, parameters.values());
  for (const ParameterTensor& tensor : engine.layout().tensors()) {
    if (tensor.shape.size() != 1) continue;
    for (size_t i = 0; i < tensor.count; ++i) {
      parameters.values()[tensor.offset + i] += fixture_value(seed + 50, tensor.offset + i, 0.2f);
    }
  }
  parameters.store();
}

std::vector<float> values(const Memory& memory) {
  std::vector<float> copy(memory.size());
  memory.read({0, copy.size()}, copy).wait();
  return copy;
}

void put(Memory& memory, size_t at, std::vector<float> values) {
  memory.write({at, at + values.size()}, values).wait();
}

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (const host::InstructionSet set : host::instruction_sets()) {
    names.push_back(host::name_of(set));
  }
  return names;
}

std::vector<double> to_double(std::span<const float> values) {
  return std::vector<double>(values.begin(), values.end());
}

}  // namespace muster::compute::testing
