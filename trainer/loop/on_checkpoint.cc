#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/file.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/data/batcher.h"
#include "trainer/loop/evaluation.h"
#include "trainer/loop/roles.h"

namespace muster::loop {

namespace fs = std::filesystem;

namespace {

// A checkpoint with the model it is of and data to look at.
struct Loaded {
  checkpoint::Store::Found found;
  Training training;
  std::unique_ptr<data::Dataset> dataset;
  std::unique_ptr<compute::Engine> engine;
};

// Those of a job or of a --storage folder, if `where` is one, or a folder of checkpoints itself.
std::optional<fs::path> checkpoints_in(const fs::path& where) {
  std::error_code error;
  if (fs::is_directory(where / "checkpoints", error)) return where / "checkpoints";
  if (!checkpoint::Store(where, 1).list().empty()) return where;
  return std::nullopt;
}

checkpoint::Store::Found find(const fs::path& where) {
  std::error_code error;
  if (!is_there(where) || !fs::is_directory(where, error))
    throw Invalid(where.string() + ": expected a checkpoint's folder or a job's directory, found " +
                  (is_there(where) ? "something else" : "nothing"));
  if (const auto folder = checkpoints_in(where)) {
    if (auto newest = checkpoint::Store(*folder, 1).newest()) return *newest;
    throw Invalid(folder->string() + ": expected a whole checkpoint, found none");
  }
  if (!is_there(where / "manifest.json"))
    throw Invalid(where.string() +
                  ": expected a checkpoint's folder, with a manifest.json, or a job's directory, "
                  "with checkpoints/; found neither");
  checkpoint::Store::Found found{where, checkpoint::Store::read_manifest(where)};
  checkpoint::Store::verify(found);
  return found;
}

void load_parameters(Loaded& loaded) {
  const auto& layout = loaded.engine->layout();
  checkpoint::Store::load(loaded.found, layout, {0, layout.size()}, loaded.engine->parameters(),
                          "");
}

Loaded load_found(checkpoint::Store::Found found, const std::string& data) {
  Loaded loaded{std::move(found), {}, nullptr, nullptr};
  const std::string source = (loaded.found.directory / "manifest.json").string();
  loaded.training = Training::from_json(loaded.found.manifest.training, source);
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
  options.device = spec.device;
  options.max_rows = spec.batch_size;
  options.threads = spec.threads;
  loaded.engine = compute::Engine::create(spec.model, options);
  load_parameters(loaded);
  return loaded;
}

// The job may be running: what it prunes while we read is answered by its newest.
Loaded load(const fs::path& where, const std::string& data) {
  for (;;) {
    checkpoint::Store::Found found = find(where);
    const fs::path directory = found.directory;
    try {
      return load_found(std::move(found), data);
    } catch (const Invalid&) {
      std::error_code error;
      if (directory == where || fs::exists(directory, error)) throw;
    }
  }
}

bool classifies(const Loaded& loaded) {
  return loaded.training.spec.model.loss == compute::Loss::softmax_cross_entropy;
}

Json predict_one(Loaded& loaded, data::Batcher& batcher, data::BatchBuffer& buffer,
                 uint64_t index) {
  std::vector<float> outputs(static_cast<size_t>(loaded.engine->output_count()));
  loaded.engine->predict(batcher.fill(buffer, 0, index), outputs);
  Json json = {{"index", index}};
  if (classifies(loaded)) {
    const auto most = std::max_element(outputs.begin(), outputs.end());
    json["predicted"] = most - outputs.begin();
    json["label"] = loaded.dataset->label(index);
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
  const Evaluation evaluation = evaluate(*loaded.engine, *loaded.dataset,
                                         loaded.training.spec.batch_size, classifies(loaded));
  Json json = {{"checkpoint", loaded.found.directory.string()},
               {"step", loaded.found.manifest.position.step},
               {"data", data},
               {"samples", evaluation.sums.rows}};
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
  return {{"checkpoint", loaded.found.directory.string()}, {"data", data}, {"predictions", list}};
}

}  // namespace muster::loop
