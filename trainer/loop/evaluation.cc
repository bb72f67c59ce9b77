#include "trainer/loop/evaluation.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/file.h"
#include "common/log.h"

namespace muster::loop {

double Evaluation::loss() const {
  return sums.rows > 0 ? sums.loss / static_cast<double>(sums.rows) : 0;
}

double Evaluation::accuracy() const {
  return sums.rows > 0 ? static_cast<double>(sums.correct) / static_cast<double>(sums.rows) : 0;
}

Json Evaluation::json() const {
  Json json = {{"loss", loss()}};
  if (classification) json["accuracy"] = accuracy();
  return json;
}

Evaluation evaluate(compute::Engine& engine, const data::Dataset& dataset, int64_t batch_size,
                    bool classification) {
  Evaluation evaluation;
  evaluation.classification = classification;
  data::EpochOrder order(dataset.size(), false, 0);
  data::Batcher batcher(dataset, order, batch_size);
  for (uint64_t begin = 0; begin < dataset.size(); begin += static_cast<uint64_t>(batch_size))
    evaluation.sums += engine.evaluate(batcher.fill(0, begin, batch_size));
  return evaluation;
}

namespace {

const data::Dataset* opened(std::unique_ptr<data::Dataset>& dataset,
                            const std::optional<spec::DataSource>& source, const char* name,
                            const compute::ModelSpec& model) {
  if (!source) return nullptr;
  compute::ModelSpec checked = model;
  if (!dataset) dataset = open_for(*source, name, checked);
  return dataset.get();
}

}  // namespace

const data::Dataset* EvaluationData::validation() {
  return opened(validation_, training_.spec.data.validation, "validation", training_.spec.model);
}

const data::Dataset* EvaluationData::test() {
  return opened(test_, training_.spec.data.test, "test", training_.spec.model);
}

Json evaluate_step(compute::Engine& engine, const Training& training, EvaluationData& data,
                   const std::filesystem::path& storage, uint64_t step, bool final) {
  const auto& spec = training.spec;
  const bool classification = spec.model.loss == compute::Loss::softmax_cross_entropy;
  Json json = {{"step", step}, {"final", final}};
  const auto add = [&](const char* name, const data::Dataset* dataset) {
    if (!dataset) return;
    const Evaluation result = evaluate(engine, *dataset, spec.batch_size, classification);
    json[name] = result.json();
    std::string text = fmt::format("{} at step {}: cost {:.4f}", name, step, result.loss());
    if (classification) text += fmt::format(", accuracy {:.4f}", result.accuracy());
    log::info(text, json[name]);
  };
  add("validation", data.validation());
  if (final) add("test", data.test());
  if (!storage.empty() && json.size() > 2) {
    muster::create_directories(storage / "evaluations");
    write_file_atomically(storage / "evaluations" / (std::to_string(step) + ".json"),
                          json.dump(2) + "\n");
  }
  return json;
}

}  // namespace muster::loop
