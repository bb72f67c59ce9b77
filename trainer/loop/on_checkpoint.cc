#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/error.h"
#include "common/exit_code.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/loop/evaluation.h"
#include "trainer/loop/roles.h"

namespace muster::loop {

namespace {

// A checkpoint with the model it is of and data to look at.
struct Loaded {
  checkpoint::Store::Found found;
  Training training;
  std::unique_ptr<data::Dataset> dataset;
  std::unique_ptr<compute::Engine> engine;
};

Loaded load(const std::filesystem::path& folder, const std::string& data) {
  Loaded loaded;
  loaded.found = {folder, checkpoint::Store::read_manifest(folder)};
  checkpoint::Store::verify(loaded.found);
  const std::string source = (folder / "manifest.json").string();
  loaded.training = Training::from_json(loaded.found.manifest.training, source);
  spec::TrainingSpec& spec = loaded.training.spec;
  const auto& chosen = data == "test" ? spec.data.test : spec.data.validation;
  if (!chosen) throw Invalid(source + ": training.data has no " + data + " data", kUsage);
  loaded.dataset = open_for(*chosen, data, spec.model);
  compute::EngineOptions options;
  options.device = spec.device;
  options.max_rows = spec.batch_size;
  options.threads = spec.threads;
  loaded.engine = compute::Engine::create(spec.model, options);
  const auto& layout = loaded.engine->layout();
  checkpoint::Store::load(loaded.found, layout, {0, layout.size()}, loaded.engine->parameters(),
                          "");
  return loaded;
}

bool classifies(const Loaded& loaded) {
  return loaded.training.spec.model.loss == compute::Loss::softmax_cross_entropy;
}

Json predict_one(Loaded& loaded, data::Batcher& batcher, uint64_t index) {
  std::vector<float> outputs(static_cast<size_t>(loaded.engine->output_count()));
  loaded.engine->predict(batcher.fill(0, index, 1), outputs);
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

Json evaluate_checkpoint(const std::filesystem::path& folder, const std::string& data) {
  Loaded loaded = load(folder, data);
  const Evaluation evaluation = evaluate(*loaded.engine, *loaded.dataset,
                                         loaded.training.spec.batch_size, classifies(loaded));
  Json json = {{"checkpoint", folder.string()},
               {"step", loaded.found.manifest.position.step},
               {"data", data},
               {"samples", evaluation.sums.rows}};
  json.update(evaluation.json());
  return json;
}

Json predict_checkpoint(const std::filesystem::path& folder, const std::string& data,
                        const std::vector<uint64_t>& indices) {
  Loaded loaded = load(folder, data);
  data::EpochOrder order(loaded.dataset->size(), false, 0);
  data::Batcher batcher(*loaded.dataset, order, 1);
  Json list = Json::array();
  for (const uint64_t index : indices) {
    if (index >= loaded.dataset->size())
      throw Invalid("--index: expected a sample below " + std::to_string(loaded.dataset->size()) +
                        " of the " + data + " data, found " + std::to_string(index),
                    kUsage);
    list.push_back(predict_one(loaded, batcher, index));
  }
  return {{"checkpoint", folder.string()}, {"data", data}, {"predictions", list}};
}

}  // namespace muster::loop
