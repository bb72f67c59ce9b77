#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/file.h"
#include "common/input_file.h"
#include "common/json.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/take_weights.h"
#include "trainer/compute/graph.h"
#include "trainer/compute/models/object_finder.h"
#include "trainer/data/batcher.h"
#include "trainer/detection/objects.h"
#include "trainer/loop/evaluation/evaluation.h"
#include "trainer/loop/roles/roles.h"

namespace muster::loop {

namespace fs = std::filesystem;

namespace {

// A checkpoint or an exported model, and data to look at.
struct Loaded {
  Json source;  // {"checkpoint", "step"} or {"model"}
  Training training;
  std::unique_ptr<data::Dataset> dataset;
  std::unique_ptr<compute::Engine> engine;
};

// Returns the checkpoints/ of `where` if it is a job's or a --storage folder, or `where` if it is a
// folder of checkpoints itself.
std::optional<fs::path> checkpoints_in(const fs::path& where) {
  std::error_code error;
  if (fs::is_directory(where / "checkpoints", error)) return where / "checkpoints";
  if (!checkpoint::Store(where, 1).list().empty()) return where;
  return std::nullopt;
}

checkpoint::Store::Found find(const fs::path& where) {
  std::error_code error;
  if (!is_there(where) || !fs::is_directory(where, error))
    throw Invalid(
        where.string() +
        ": expected a checkpoint's folder, a job's directory or an exported model, found " +
        (is_there(where) ? "something else" : "nothing"));
  if (const auto folder = checkpoints_in(where)) {
    if (auto newest = checkpoint::Store(*folder, 1).newest()) return *newest;
    throw Invalid(folder->string() + ": expected a whole checkpoint, found none");
  }
  if (!is_there(where / "manifest.json"))
    throw Invalid(where.string() +
                  ": expected a checkpoint's folder, with a manifest.json, a job's directory, with "
                  "checkpoints/, or a folder with a model.safetensors; found none of them");
  checkpoint::Store::Found found{where, checkpoint::Store::read_manifest(where)};
  checkpoint::Store::verify(found);
  return found;
}

// Returns the exported model if `where` is one or is its folder.
std::optional<fs::path> model_at(const fs::path& where) {
  std::error_code error;
  if (where.extension() == ".safetensors" && fs::is_regular_file(where, error)) return where;
  const fs::path file = where / "model.safetensors";
  const bool is_folder = fs::is_regular_file(file, error) && !fs::exists(where / "manifest.json");
  return is_folder ? std::optional(file) : std::nullopt;
}

// Loads everything but the parameters. `source` is the file that contains `training`.
Loaded assemble_for(const Json& training, const std::string& source, const std::string& data) {
  Loaded loaded{{}, Training::from_json(training, source), nullptr, nullptr};
  spec::TrainingSpec& spec = loaded.training.spec;
  const auto& chosen = data == "test" ? spec.data.test : spec.data.validation;
  if (!chosen) {
    const char* other = data == "test" ? "validation" : "test";
    const bool has_other =
        data == "test" ? spec.data.validation.has_value() : spec.data.test.has_value();
    throw Invalid(source + ": expected " + data + " data in its training.data, found " +
                      (has_other ? other + std::string(" data; choose them by --data ") + other
                                 : "neither test nor validation data"),
                  kUsage);
  }
  take_label_count_from_layers(spec.model);
  loaded.dataset = open_for(loaded.training, data, spec.model);
  compute::EngineOptions options;
  options.device = compute::choose_devices(spec.device, 1).front();
  options.max_rows = spec.batch_size;
  options.threads = spec.threads;
  loaded.engine = compute::Engine::create(spec.model, options);
  return loaded;
}

Loaded load_found(const checkpoint::Store::Found& found, const std::string& data) {
  const std::string source = (found.directory / "manifest.json").string();
  Loaded loaded = assemble_for(found.manifest.training, source, data);
  loaded.source = {{"checkpoint", found.directory.string()},
                   {"step", found.manifest.position.step}};
  compute::HostView parameters(loaded.engine->parameters());
  checkpoint::Store::load_weights(found, loaded.engine->layout(), parameters.values());
  parameters.store();
  return loaded;
}

Loaded load_model(const fs::path& file, const std::string& data) {
  const auto header = checkpoint::SafetensorsHeader::read(InputFile(file));
  const auto said = header.metadata.find("training");
  const Json training = said == header.metadata.end() ? Json() : parse_or_null(said->second);
  if (!training.is_object())
    throw Invalid(file.string() +
                  ": expected a model that muster has exported, with its training in the "
                  "metadata; found none there");
  Loaded loaded = assemble_for(training, file.string(), data);
  loaded.source = {{"model", file.string()}};
  compute::HostView parameters(loaded.engine->parameters());
  const auto weights =
      checkpoint::take_weights("--checkpoint", file, loaded.engine->layout(), parameters.values());
  parameters.store();
  if (!weights.missing.empty())
    throw Invalid(file.string() + ": expected all tensors of its model, found no " +
                  weights.missing[0]);
  return loaded;
}

// The job may be running. If it prunes the checkpoint that is read here, its newest is loaded
// instead.
Loaded load(const fs::path& where, const std::string& data) {
  if (const auto model = model_at(where)) return load_model(*model, data);
  for (;;) {
    const checkpoint::Store::Found found = find(where);
    try {
      return load_found(found, data);
    } catch (const Invalid&) {
      std::error_code error;
      if (found.directory == where || fs::exists(found.directory, error)) throw;
    }
  }
}

Json to_json(const detection::Box& box) {
  return {{"ymin", box.ymin}, {"xmin", box.xmin}, {"ymax", box.ymax}, {"xmax", box.xmax}};
}

// The objects found in an image by falling score, and those that are there. Boxes are relative to
// the image.
Json objects_json(const compute::ModelSpec& model, std::span<const float> outputs,
                  std::span<const float> target) {
  compute::ObjectFinder finder(std::get<compute::SsdLoss>(model.loss), compute::build_graph(model));
  Json json = {{"predicted", Json::array()}, {"objects", Json::array()}};
  for (const detection::Detection& found : finder.find(outputs))
    json["predicted"].push_back(
        {{"label", found.label}, {"score", found.score}, {"box", to_json(found.box)}});
  const detection::ObjectList objects(target);
  for (size_t i = 0; i < objects.size(); ++i)
    json["objects"].push_back(
        {{"label", objects.at(i).label}, {"box", to_json(objects.at(i).box)}});
  return json;
}

Json predict_one(Loaded& loaded, data::Batcher& batcher, data::BatchBuffer& buffer,
                 uint64_t index) {
  std::vector<float> outputs(static_cast<size_t>(loaded.engine->output_count()));
  const compute::Batch& batch = batcher.fill(buffer, 0, index);
  loaded.engine->predict(batch, outputs);
  Json json = {{"index", index}};
  const compute::ModelSpec& model = loaded.training.spec.model;
  const auto& loss = compute::describe(model.loss);
  if (loss.labels == compute::LabelKind::objects) {
    const auto floats = static_cast<size_t>(model.label_count);
    json.update(objects_json(model, outputs, {batch.targets[0], floats}));
  } else if (loss.labels == compute::LabelKind::classes) {
    const auto most = std::max_element(outputs.begin(), outputs.end());
    json["predicted"] = most - outputs.begin();
    json["label"] = batch.labels[0];
    json["probability"] = *most;
    json["probabilities"] = outputs;
  } else {
    const float* target = loaded.dataset->target(index);
    json["predicted"] = outputs;
    json["target"] = std::vector<float>(target, target + outputs.size());
  }
  return json;
}

}  // namespace

Json evaluate_checkpoint(const fs::path& where, const std::string& data) {
  Loaded loaded = load(where, data);
  const Evaluation evaluation = *evaluate(*loaded.engine, *loaded.dataset, loaded.training.spec);
  Json json = loaded.source;
  json["data"] = data;
  json["samples"] = evaluation.samples;
  json.update(evaluation.json());
  return json;
}

Json predict_checkpoint(const fs::path& where, const std::string& data,
                        const std::vector<int64_t>& indices) {
  Loaded loaded = load(where, data);
  data::Batcher batcher(*loaded.dataset, 1);
  data::BatchBuffer buffer(*loaded.dataset, 1);
  Json list = Json::array();
  const auto samples = static_cast<int64_t>(loaded.dataset->size());
  for (const int64_t index : indices) {
    if (index < 0 || index >= samples)
      throw Invalid("--index: expected a sample from 0 to " + std::to_string(samples - 1) +
                        " of the " + data + " data, found " + std::to_string(index),
                    kUsage);
    list.push_back(predict_one(loaded, batcher, buffer, static_cast<uint64_t>(index)));
  }
  Json json = loaded.source;
  json.erase("step");
  json["data"] = data;
  json["predictions"] = list;
  return json;
}

}  // namespace muster::loop
