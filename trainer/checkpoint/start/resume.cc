#include "trainer/checkpoint/start/resume.h"

#include <algorithm>
#include <optional>

#include "common/documents/json.h"
#include "trainer/spec/convert.h"

namespace muster::checkpoint {

namespace {

using spec::TrainingSpec;

// Collects the settings of a model that decide its tensors' names and shapes, without the values
// that the data decide.
struct Tensors {
  std::string text;
  void operator()(const compute::Dense& dense) {
    text += "dense " + std::to_string(dense.units) + (dense.use_bias ? " bias" : "");
  }
  void operator()(const compute::Conv2d& layer) {
    text += "convolution " + std::to_string(layer.filters) + " of " + size_of(layer);
  }
  void operator()(const compute::DepthwiseConv2d& layer) {
    text += "depthwise convolution of " + size_of(layer);
  }
  void operator()(const compute::BatchNormalization&) { text += "batch normalization"; }
  void operator()(const compute::Add&) { text += "add"; }
  void operator()(const compute::Concatenate&) { text += "concatenate"; }
  // These have no tensors.
  void operator()(const compute::ActivationLayer&) {}
  void operator()(const compute::Dropout&) {}
  void operator()(const compute::MaxPool&) {}
  void operator()(const compute::AveragePool&) {}
  void operator()(const compute::GlobalAveragePool&) {}
  void operator()(const compute::Flatten&) {}
  void operator()(const compute::Reshape&) {}

  static std::string size_of(const auto& layer) {
    const auto& size = layer.window.size;
    return std::to_string(size[0]) + " x " + std::to_string(size[1]) +
           (layer.use_bias ? " bias" : "");
  }
};

std::string tensors_of(const compute::ModelSpec& model) {
  std::string all;
  for (const compute::LayerSpec& layer : model.layers) {
    Tensors tensors;
    std::visit(tensors, layer.kind);
    if (tensors.text.empty()) continue;
    all += layer.name + ": " + tensors.text + (layer.trainable ? "" : " frozen");
    for (const std::string& input : layer.inputs) all += " " + input;
    all += "\n";
  }
  return all;
}

// An optimizer's slots are compared by meaning, not by their names: Adam's v is not momentum's.
std::string meaning_of_slots(const compute::Sgd& sgd) {
  return sgd.momentum == 0.0f ? "" : "velocity";
}
std::string meaning_of_slots(const compute::Adam&) {
  return "moments";
}
std::string meaning_of_slots(const compute::AdamW&) {
  return "moments";
}
std::string meaning_of_slots(const compute::Lamb&) {
  return "moments";
}
std::string meaning_of_slots(const compute::RmsProp&) {
  return "mean square and velocity";
}
std::string kept_by(const compute::OptimizerSpec& optimizer) {
  return std::visit([](const auto& one) { return meaning_of_slots(one); }, optimizer.kind);
}

// Whether a checkpoint made with `before` has all slots that `after` needs.
bool has_slots(const compute::OptimizerSpec& before, const compute::OptimizerSpec& after) {
  const std::string needed = kept_by(after);
  return (needed.empty() || needed == kept_by(before)) && (!after.average || before.average);
}

uint64_t samples_of_unit(const TrainingSpec& spec, bool distributed) {
  const bool tickets = distributed && spec.policy != spec::SyncPolicy::sync;
  const auto batch = static_cast<uint64_t>(spec.batch_size);
  const int batches = tickets ? spec.gradient_accumulation * spec.devices : 1;
  return batch * static_cast<uint64_t>(batches);
}

// Returns the position in batches of `to` samples; nothing if it is not a whole number of batches.
std::optional<Position> converted(Position position, uint64_t from, uint64_t to) {
  if (from == to) return position;
  const uint64_t samples = position.next_batch * from;
  if (samples % to != 0 || !position.outstanding.empty()) return std::nullopt;
  position.next_batch = samples / to;
  return position;
}

std::optional<std::string> metric_of(const std::optional<spec::EarlyStoppingSpec>& stopping) {
  return stopping ? std::optional(stopping->metric) : std::nullopt;
}

// Drops results of evaluations that were made with another metric, another loss or other data:
// later results cannot be compared with them. Also drops a decision by another stopWhen.
void forget_others(Position& position, const Json& before, const Json& after) {
  Evaluations& evaluations = position.evaluations;
  const TrainingSpec made_with = spec::to_training_spec(before);
  const TrainingSpec asked_for = spec::to_training_spec(after);
  const auto validation = [](const Json& training) {
    return member(member(training, "data"), "validation");
  };
  const bool others = made_with.model.loss != asked_for.model.loss ||
                      !spec::changes(validation(before), validation(after)).empty();
  if (others || made_with.stop_when != asked_for.stop_when) evaluations.reached.reset();
  if (others || metric_of(made_with.early_stopping) != metric_of(asked_for.early_stopping)) {
    evaluations.best.reset();
    evaluations.without_improvement = 0;
  }
  if (others || made_with.checkpoint.best_only != asked_for.checkpoint.best_only)
    evaluations.kept.reset();
  // Up to this step there may be results of an evaluator that nobody has read.
  if (others) evaluations.step = position.step;
}

std::string batch_obstacle(const Position& position, uint64_t from, uint64_t to) {
  return std::to_string(position.next_batch * from) + " samples of epoch " +
         std::to_string(position.epoch) + " are done, " +
         (position.outstanding.empty() ? "no whole number of batches of " + std::to_string(to)
                                       : "and some batches are handed out and not done") +
         "; go on with batches of " + std::to_string(from);
}

}  // namespace

Resumption resume(const Manifest& manifest, const Json& training, bool distributed) {
  Resumption result;
  result.position = manifest.position;
  const std::optional<Json> made_with = spec::with_defaults(manifest.training);
  if (!made_with) return result;
  const TrainingSpec before = spec::to_training_spec(*made_with);
  const TrainingSpec after = spec::to_training_spec(training);

  const bool same_tensors = tensors_of(before.model) == tensors_of(after.model);
  const bool slots = has_slots(before.optimizer, after.optimizer);
  const uint64_t from = samples_of_unit(before, distributed);
  const uint64_t to = samples_of_unit(after, distributed);
  const auto position = converted(manifest.position, from, to);
  if (position) result.position = *position;
  forget_others(result.position, *made_with, training);

  for (const spec::Change& change : spec::changes(*made_with, training)) {
    const auto below = [&](const char* parent) { return spec::is_below(change.path, parent); };
    if (!same_tensors && below("model")) {
      result.obstacles.push_back({change,
                                  "a changed model needs a directory of its own; "
                                  "initializeFrom takes the weights of layers that have kept "
                                  "name and shape"});
    } else if (!slots && below("optimizer")) {
      result.obstacles.push_back({change,
                                  "the checkpoint has not what this optimizer keeps for "
                                  "each parameter"});
    } else if (!position && (below("batchSize") || below("gradientAccumulation") ||
                             below("devices") || below("synchronization"))) {
      result.obstacles.push_back({change, batch_obstacle(manifest.position, from, to)});
    } else if (spec::bearing_of(change.path) == spec::Bearing::course) {
      result.changed.push_back(change);
    }
  }
  return result;
}

std::vector<Problem> problems_of(const Resumption& resumption, const std::string& checkpoint,
                                 const std::string& path,
                                 const std::function<std::string(const std::string&)>& where) {
  std::vector<Problem> problems;
  for (const auto& [change, why] : resumption.obstacles) {
    const std::string field = path.empty() ? change.path : path + "." + change.path;
    problems.push_back(
        {field, where(field),
         describe(change.before) + ", as in " + checkpoint + ", which training goes on from",
         describe(change.after), why});
  }
  return problems;
}

}  // namespace muster::checkpoint
