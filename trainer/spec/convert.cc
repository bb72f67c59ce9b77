#include "trainer/spec/convert.h"

#include <optional>

#include "common/documents/json.h"
#include "common/error.h"
#include "trainer/compute/models/catalogue.h"
#include "trainer/spec/layers.h"

namespace muster::spec {

namespace {

using compute::Activation;
using compute::Initializer;
using compute::InitializerKind;

// Reports a name that the schema allows and this file does not know.
[[noreturn]] void unknown(const char* field, const std::string& name) {
  throw Invalid(std::string(field) +
                ": expected a name that trainer/spec/convert.cc knows, found " + name);
}

std::optional<uint64_t> optional_count(const Json& value, const char* key) {
  const int64_t number = integer_or(value, key, -1);
  return number < 0 ? std::nullopt : std::optional<uint64_t>(static_cast<uint64_t>(number));
}

Activation to_activation(const std::string& name) {
  if (name == "relu") return Activation::relu;
  if (name == "relu6") return Activation::relu6;
  if (name == "sigmoid") return Activation::sigmoid;
  return name == "softmax" ? Activation::softmax : Activation::linear;
}

Initializer to_initializer(const Json& value, Initializer fallback) {
  const std::string name = string_or(value, "name", "");
  const auto scale = static_cast<float>(number_or(value, "scale", 1.0));
  if (name == "glorotUniform") return {InitializerKind::glorot_uniform, scale};
  if (name == "heNormal") return {InitializerKind::he_normal, scale};
  if (name == "normal") return {InitializerKind::normal, scale};
  if (name == "truncatedNormal") return {InitializerKind::truncated_normal, scale};
  if (name == "uniform") return {InitializerKind::uniform, scale};
  if (name == "zeros") return {InitializerKind::zeros, 0.0f};
  if (name == "constant") return {InitializerKind::constant, scale};
  return fallback;
}

// Returns two numbers; a single number in the manifest stands for both.
std::array<int64_t, 2> to_pair(const Json& value, std::array<int64_t, 2> fallback) {
  if (!value.is_array() || value.empty()) return fallback;
  return {value.front().get<int64_t>(), value.back().get<int64_t>()};
}

// `size`: the default size. The default strides of a pool are its size.
compute::Window to_window(const Json& fields, int64_t size, bool pool) {
  compute::Window window;
  window.size = to_pair(member(fields, "size"), {size, size});
  const std::array<int64_t, 2> one{1, 1};
  window.strides = to_pair(member(fields, "strides"), pool ? window.size : one);
  window.padding = string_or(fields, "padding", "valid") == "same" ? compute::Padding::same
                                                                   : compute::Padding::valid;
  return window;
}

// Reads the fields that all layers with a kernel have.
template <typename Layer>
Layer with_kernel(Layer layer, const Json& fields) {
  layer.activation = to_activation(string_or(fields, "activation", "linear"));
  layer.use_bias = bool_or(fields, "useBias", true);
  layer.kernel_initializer =
      to_initializer(member(fields, "kernelInitializer"), layer.kernel_initializer);
  layer.bias_initializer =
      to_initializer(member(fields, "biasInitializer"), layer.bias_initializer);
  return layer;
}

compute::LayerKind to_layer_kind(const std::string& kind, const Json& fields) {
  if (kind == "dense") {
    compute::Dense dense;
    dense.units = integer_or(fields, "units", 0);
    return with_kernel(dense, fields);
  }
  if (kind == "conv2d") {
    compute::Conv2d convolution;
    convolution.filters = integer_or(fields, "filters", 0);
    convolution.window = to_window(fields, 3, false);
    return with_kernel(convolution, fields);
  }
  if (kind == "depthwiseConv2d") {
    compute::DepthwiseConv2d convolution;
    convolution.window = to_window(fields, 3, false);
    return with_kernel(convolution, fields);
  }
  if (kind == "maxPool") return compute::MaxPool{to_window(fields, 2, true)};
  if (kind == "averagePool") return compute::AveragePool{to_window(fields, 2, true)};
  if (kind == "globalAveragePool") return compute::GlobalAveragePool{};
  if (kind == "flatten") return compute::Flatten{};
  if (kind == "reshape") {
    compute::Reshape reshape;
    for (const Json& axis : member(fields, "shape")) reshape.shape.push_back(axis);
    return reshape;
  }
  if (kind == "activation") {
    return compute::ActivationLayer{to_activation(string_or(fields, "function", "linear"))};
  }
  if (kind == "dropout") {
    return compute::Dropout{static_cast<float>(number_or(fields, "rate", 0.5))};
  }
  if (kind == "batchNormalization") {
    return compute::BatchNormalization{static_cast<float>(number_or(fields, "momentum", 0.99)),
                                       static_cast<float>(number_or(fields, "epsilon", 1e-3))};
  }
  if (kind == "add") return compute::Add{};
  if (kind == "concatenate") return compute::Concatenate{};
  unknown("model.layers", kind);
}

DataSpec to_data(const Json& training, const compute::ModelSpec& model) {
  const Json& value = member(training, "data");
  DataSpec data;
  data.train = to_source_for(model, member(value, "train"), true);
  const Json& validation = member(value, "validation");
  if (validation.is_object()) data.validation = to_source_for(model, validation, false);
  const Json& test = member(value, "test");
  if (test.is_object()) data.test = to_source_for(model, test, false);
  for (auto* part : {&data.validation, &data.test})
    if (*part) train_on(data.train, **part);
  data.drop_remainder = bool_or(training, "dropRemainder", false);
  return data;
}

compute::OptimizerKind to_optimizer_kind(const Json& value) {
  const std::string name = string_or(value, "name", "adam");
  const auto number = [&](const char* key, float fallback) {
    return static_cast<float>(number_or(value, key, fallback));
  };
  if (name == "sgd" || name == "momentum") {
    return compute::Sgd{number("momentum", name == "momentum" ? 0.9f : 0.0f),
                        bool_or(value, "nesterov", false)};
  }
  if (name == "rmsprop") {
    const compute::RmsProp rms;
    return compute::RmsProp{number("decay", rms.decay), number("momentum", rms.momentum),
                            number("epsilon", rms.epsilon)};
  }
  const compute::AdamW defaults;
  const float beta1 = number("beta1", defaults.beta1), beta2 = number("beta2", defaults.beta2);
  const float epsilon = number("epsilon", defaults.epsilon);
  if (name == "adam") return compute::Adam{beta1, beta2, epsilon};
  if (name == "lamb")
    return compute::Lamb{beta1, beta2, epsilon,
                         number("weightDecay", compute::Lamb{}.weight_decay)};
  if (name != "adamw") unknown("optimizer.name", name);
  return compute::AdamW{beta1, beta2, epsilon, number("weightDecay", defaults.weight_decay)};
}

compute::OptimizerSpec to_optimizer(const Json& value) {
  compute::OptimizerSpec spec = to_optimizer_kind(value);
  const auto number = [&](const char* key) -> std::optional<float> {
    if (!given(value, key)) return std::nullopt;
    return static_cast<float>(number_or(value, key, 0));
  };
  if (const Json& l2 = member(value, "l2"); l2.is_object())
    spec.l2 =
        compute::L2{static_cast<float>(number_or(l2, "factor", 0)), string_or(l2, "tensors", "")};
  spec.clip_value = number("clipValue");
  spec.clip_norm = number("clipNorm");
  if (const Json& average = member(value, "ema"); average.is_object())
    spec.average = number_or(average, "decay", 0);
  return spec;
}

compute::Schedule to_schedule(const Json& training) {
  compute::Schedule schedule;
  schedule.learning_rate = number_or(member(training, "optimizer"), "learningRate", 0.001);
  const Json& value = member(training, "learningRateSchedule");
  schedule.warmup_steps = static_cast<uint64_t>(integer_or(value, "warmupSteps", 0));
  if (const Json& piecewise = member(value, "piecewise"); piecewise.is_object()) {
    schedule.shape = compute::Piecewise{piecewise["boundaries"].get<std::vector<uint64_t>>(),
                                        piecewise["values"].get<std::vector<double>>()};
  } else if (const Json& exponential = member(value, "exponential"); exponential.is_object()) {
    schedule.shape = compute::Exponential{
        static_cast<uint64_t>(integer_or(exponential, "decaySteps", 1)),
        number_or(exponential, "rate", 1.0), bool_or(exponential, "staircase", false)};
  } else if (const Json& cosine = member(value, "cosine"); cosine.is_object()) {
    schedule.shape = compute::Cosine{static_cast<uint64_t>(integer_or(cosine, "decaySteps", 1)),
                                     number_or(cosine, "alpha", 0.0)};
  }
  return schedule;
}

std::string to_metric(const Json& value) {
  return string_or(value, "metric", kDefaultMetric);
}

std::optional<EarlyStoppingSpec> to_early_stopping(const Json& value) {
  if (!value.is_object()) return std::nullopt;
  EarlyStoppingSpec stopping;
  stopping.metric = to_metric(value);
  stopping.patience = static_cast<uint64_t>(integer_or(value, "patience", 0));
  stopping.min_delta = number_or(value, "minDelta", 0);
  stopping.restore_best = bool_or(value, "restoreBest", false);
  return stopping;
}

std::optional<StopWhenSpec> to_stop_when(const Json& value) {
  if (!value.is_object()) return std::nullopt;
  StopWhenSpec stop;
  stop.metric = string_or(value, "metric", kTrainLoss);
  stop.at_least = given(value, "atLeast");
  stop.value = number_or(value, stop.at_least ? "atLeast" : "atMost", 0);
  return stop;
}

std::vector<std::string> to_texts(const Json& value) {
  return value.is_array() ? value.get<std::vector<std::string>>() : std::vector<std::string>();
}

InitializeOptions to_initialize_options(const Json& value) {
  InitializeOptions options;
  for (const Json& step : member(value, "rename"))
    options.rename.push_back({string_or(step, "from", ""), string_or(step, "to", "")});
  options.include = to_texts(member(value, "include"));
  options.exclude = to_texts(member(value, "exclude"));
  options.skip_mismatched = bool_or(value, "skipMismatched", false);
  options.moving_averages = bool_or(value, "movingAverages", false);
  return options;
}

CheckpointSpec to_checkpoint(const Json& value) {
  CheckpointSpec checkpoint;
  const double seconds = number_or(value, "everySeconds", 0);
  if (seconds > 0) checkpoint.every_seconds = seconds;
  checkpoint.every_steps = optional_count(value, "everySteps");
  checkpoint.every_epochs = optional_count(value, "everyEpochs");
  checkpoint.keep = static_cast<int>(integer_or(value, "keep", 5));
  if (const Json& best = member(value, "bestOnly"); best.is_object()) {
    checkpoint.best_only = to_metric(best);
    checkpoint.keep = 1;
  }
  const Json& speed = member(value, "megabytesPerSecond");
  if (speed.is_number()) checkpoint.bytes_per_second = 1e6 * speed.get<double>();
  return checkpoint;
}

SyncPolicy to_policy(const std::string& name) {
  if (name == "sync") return SyncPolicy::sync;
  if (name == "async") return SyncPolicy::async;
  if (name == "boundedStaleness") return SyncPolicy::bounded_staleness;
  unknown("synchronization.policy", name);
}

Nccl to_nccl(const std::string& name) {
  if (name == "auto") return Nccl::automatic;
  if (name == "always") return Nccl::always;
  if (name == "never") return Nccl::never;
  unknown("synchronization.nccl", name);
}

void read_synchronization(const Json& value, TrainingSpec& spec) {
  spec.policy = to_policy(string_or(value, "policy", "sync"));
  spec.backup_workers = static_cast<int>(integer_or(value, "backupWorkers", 0));
  spec.max_staleness = static_cast<int>(integer_or(value, "maxStaleness", 4));
  spec.wire =
      string_or(value, "wire", "float32") == "bfloat16" ? WireType::bfloat16 : WireType::float32;
  spec.nccl = to_nccl(string_or(value, "nccl", "auto"));
}

}  // namespace

const char* name_of(WireType type) {
  return type == WireType::bfloat16 ? "bfloat16" : "float32";
}

compute::LossKind to_loss(const Json& model) {
  if (const auto known = compute::find_model(string_or(model, "name", ""))) return known->loss;
  const std::string name = string_or(model, "loss", "softmaxCrossEntropy");
  const Json& options = member(model, "lossOptions");
  if (name == "meanSquaredError") return compute::MeanSquaredError{};
  const auto float_or = [&](const char* field, float otherwise) {
    return static_cast<float>(number_or(options, field, static_cast<double>(otherwise)));
  };
  if (name == "huber") return compute::Huber{float_or("delta", compute::Huber{}.delta)};
  if (name == "poisson") return compute::Poisson{};
  if (name == "quantile") {
    compute::Quantile loss{.quantiles = {float_or("quantile", 0.5f)}};
    const Json& several = member(options, "quantiles");
    if (several.is_array() && !several.empty())
      loss.count = std::min<int64_t>(compute::Quantile::kMost, std::ssize(several));
    for (int64_t i = 0; i < loss.count && several.is_array(); ++i)
      if (const Json& one = several[static_cast<size_t>(i)]; one.is_number())
        loss.quantiles[i] = one.get<float>();
    return loss;
  }
  if (name == "binaryCrossEntropy") {
    const compute::BinaryCrossEntropy defaults;
    return compute::BinaryCrossEntropy{float_or("positiveWeight", defaults.positive_weight),
                                       float_or("threshold", defaults.threshold)};
  }
  if (name != "softmaxCrossEntropy") unknown("model.loss", name);
  return compute::SoftmaxCrossEntropy{};
}

namespace {

void freeze(const Patterns& patterns, compute::ModelSpec& model) {
  for (compute::LayerSpec& layer : model.layers)
    if (patterns.match(layer.name)) layer.trainable = false;
}

}  // namespace

compute::ModelSpec to_model(const Json& value) {
  const Patterns frozen(to_texts(member(value, "freeze")));
  compute::ModelOptions options;
  const auto float_of = [&](const char* field) -> std::optional<float> {
    if (!given(value, field)) return std::nullopt;
    return static_cast<float>(number_or(value, field, 0));
  };
  if (given(value, "classes")) options.classes = integer_or(value, "classes", 1);
  options.depth_multiplier = float_of("depthMultiplier");
  options.normalization_momentum = float_of("normalizationMomentum");
  if (string_or(value, "classificationLoss", "sigmoid") == "softmax")
    options.classification = {detection::ClassificationLoss::Kind::softmax,
                              float_of("logitScale").value_or(1)};
  if (auto known = compute::find_model(string_or(value, "name", ""), options)) {
    freeze(frozen, *known);
    return *known;
  }
  compute::ModelSpec model;
  model.name = "custom";
  model.loss = to_loss(value);
  const Json& layers = member(value, "layers");
  const std::vector<std::string> names = layer_names(layers);
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string kind = layer_kind(layers[i]);
    const Json& fields = member(layers[i], kind);
    compute::LayerSpec layer{names[i], to_layer_kind(kind, fields), {}, true};
    layer.trainable = bool_or(fields, "trainable", true);
    for (const Json& input : member(fields, "inputs")) layer.inputs.push_back(input);
    model.layers.push_back(std::move(layer));
  }
  freeze(frozen, model);
  return model;
}

DataSource to_source_for(const compute::ModelSpec& model, const Json& value, bool shuffle) {
  DataSource source = to_source(value, shuffle);
  if (auto* table = std::get_if<TableSource>(&source.kind)) {
    const Json& target = member(member(value, "table"), "target");
    if (!given(target, "kind"))
      table->target.is_class = !given(target, "columns") &&
                               compute::describe(model.loss).labels == compute::LabelKind::classes;
  }
  const auto* detector = std::get_if<compute::SsdLoss>(&model.loss);
  if (detector == nullptr) return source;
  if (auto* records = std::get_if<RecordSource>(&source.kind))
    records->model_classes = detector->classes;
  if (auto* coco = std::get_if<CocoSource>(&source.kind)) coco->model_classes = detector->classes;
  return source;
}

TrainingSpec to_training_spec(const Json& training) {
  TrainingSpec spec;
  spec.model = to_model(member(training, "model"));
  spec.initialize_from = string_or(training, "initializeFrom", "");
  spec.initialize_options = to_initialize_options(member(training, "initializeOptions"));
  spec.data = to_data(training, spec.model);
  spec.batch_size = integer_or(training, "batchSize", 32);
  spec.epochs = optional_count(training, "epochs");
  spec.steps = optional_count(training, "steps");
  spec.gradient_accumulation = static_cast<int>(integer_or(training, "gradientAccumulation", 1));
  spec.optimizer = to_optimizer(member(training, "optimizer"));
  spec.schedule = to_schedule(training);
  read_synchronization(member(training, "synchronization"), spec);
  spec.checkpoint = to_checkpoint(member(training, "checkpoint"));
  if (const Json& evaluation = member(training, "evaluation"); evaluation.is_object())
    spec.evaluate_every_epochs = static_cast<uint64_t>(integer_or(evaluation, "everyEpochs", 1));
  spec.early_stopping = to_early_stopping(member(training, "earlyStopping"));
  spec.stop_when = to_stop_when(member(training, "stopWhen"));
  const Json& summary = member(training, "summary");
  spec.summary_every_steps = static_cast<uint64_t>(integer_or(summary, "everySteps", 100));
  spec.summary_pictures = static_cast<size_t>(integer_or(summary, "pictures", 4));
  spec.export_onnx = bool_or(member(training, "export"), "onnx", true);
  if (string_or(training, "precision", "float32") == "bfloat16")
    spec.precision = compute::Precision::bfloat16;
  spec.device = string_or(training, "device", "auto");
  spec.ps_device = string_or(training, "psDevice", "cpu");
  spec.devices = static_cast<int>(integer_or(training, "devices", 1));
  spec.threads = static_cast<int>(integer_or(training, "threads", 0));
  spec.seed = static_cast<uint64_t>(integer_or(training, "seed", 1));
  spec.strict_determinism = string_or(training, "determinism", "warn") == "strict";
  return spec;
}

}  // namespace muster::spec
