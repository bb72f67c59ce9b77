#include "trainer/loop/evaluation/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/error.h"
#include "common/job/metric_name.h"
#include "common/program/log.h"
#include "common/system/file.h"
#include "common/threads/watched_work.h"
#include "trainer/compute/graph.h"
#include "trainer/data/tables/preparation.h"
#include "trainer/loop/batches/feed.h"
#include "trainer/loop/loss_text.h"

namespace muster::loop {

Json Evaluation::json() const {
  Json json = Json::object();
  for (const auto& [name, value] : metrics) json[name] = value;
  for (const auto& [name, values] : by_class.items()) json[name] = values;
  return json;
}

void for_each_number(const std::string& data, const Json& evaluation,
                     const std::function<void(const std::string& tag, double value)>& take) {
  for (const auto& [name, value] : evaluation.items()) {
    const std::string tag = metric_tag(data, name);
    if (value.is_number()) take(tag, value.get<double>());
    if (!value.is_object()) continue;
    for (const auto& [of_class, number] : value.items())
      if (number.is_number()) take(tag + "/" + of_class, number.get<double>());
  }
}

std::map<std::string, double> numbers_of(const Json& evaluation) {
  std::map<std::string, double> numbers;
  for (const auto& [name, value] : evaluation.items())
    if (value.is_number()) numbers[name] = value.get<double>();
  return numbers;
}

namespace {

// Returns a class's name, with its number if an earlier class has the same name.
std::string name_of(size_t index, const data::SampleFormat& names) {
  const std::string name = names.class_name(index);
  const auto earlier = std::span(names.classes).first(std::min(index, names.classes.size()));
  const bool is_known = std::ranges::find(earlier, name) != earlier.end();
  return is_known ? fmt::format("{} ({})", name, index) : name;
}

Json by_class(const compute::Accumulator& accumulator, const data::SampleFormat& names) {
  Json json = Json::object();
  for (const compute::ClassMetric& metric : accumulator.class_metrics())
    for (size_t i = 0; i < metric.values.size(); ++i)
      if (metric.values[i]) json[metric.name][name_of(i, names)] = *metric.values[i];
  if (const auto confusion = accumulator.confusion(); !confusion.empty())
    json["confusion"] = confusion;
  return json;
}

}  // namespace

compute::Measuring measuring_of(const data::Dataset& dataset) {
  compute::Measuring measuring;
  if (dataset.rank_at() > 0) measuring.rank_at = dataset.rank_at();
  const Json& table = dataset.format().table;
  if (table.is_null()) return measuring;
  const auto scalings = data::parse_preparation(table, "samples: table").target_scalings;
  if (!scalings.empty())
    measuring.undo = [scalings](size_t index, double number) {
      return scalings.at(index).undo(number);
    };
  return measuring;
}

std::optional<Evaluation> evaluate(compute::Engine& engine, const data::Dataset& dataset,
                                   const spec::TrainingSpec& spec, std::stop_token stop) {
  const compute::Graph graph = compute::build_graph(spec.model);
  const data::SampleFormat& format = dataset.format();
  const auto accumulators = compute::make_accumulators(graph, measuring_of(dataset));
  const auto pictures = PictureTaker::create(graph, format, spec.summary_pictures);
  std::vector<float> outputs(static_cast<size_t>(spec.batch_size * engine.output_count()));
  Evaluation evaluation;
  const auto shards = data::Shards::by_record(dataset.size(), {.rows = spec.batch_size});
  Feed feed(dataset, shards, {.shuffle = false, .threads = engine.threads()});
  Work work;
  for (; work.at.step < shards.batches_per_epoch(); ++work.at.step) {
    const WatchedWork watched(WatchedWork::Kind::computing, "evaluating");
    if (stop.stop_requested()) return std::nullopt;
    const compute::Batch& batch = feed.batch(work);
    const compute::LossSums sums = engine.evaluate(batch, outputs);
    evaluation.samples += static_cast<uint64_t>(batch.rows);
    for (const auto& accumulator : accumulators) accumulator->add({batch, outputs, sums});
    if (pictures) pictures->add(batch, outputs);
  }
  for (const auto& accumulator : accumulators) {
    for (compute::Metric& metric : accumulator->metrics())
      evaluation.metrics.push_back(std::move(metric));
    evaluation.by_class.update(by_class(*accumulator, format));
  }
  if (pictures) evaluation.pictures = pictures->take();
  return evaluation;
}

EvaluationData::EvaluationData(Training& training, const std::vector<std::string>& names) {
  const auto add = [&](const char* name, const std::optional<spec::DataSource>& source) {
    if (!source || std::ranges::find(names, name) == names.end()) return;
    Part part{name, nullptr, ""};
    try {
      compute::ModelSpec model = training.spec.model;
      part.dataset = open_for(training, name, model);
      training.spec.model = std::move(model);
    } catch (const Invalid& error) {
      part.problem = error.what();
    }
    parts_.push_back(std::move(part));
  };
  add("validation", training.spec.data.validation);
  add("test", training.spec.data.test);
}

std::string EvaluationData::problems() const {
  std::string text;
  for (const Part& part : parts_) {
    if (part.problem.empty()) continue;
    text += (text.empty() ? "" : "; ") + part.name + " data: " + part.problem;
  }
  return text;
}

bool EvaluationData::any_usable() const {
  return std::ranges::any_of(parts_, [](const Part& part) { return part.dataset != nullptr; });
}

void EvaluationData::require_all() const {
  if (const std::string text = problems(); !text.empty()) throw Invalid(text);
}

namespace {

std::optional<Evaluation> evaluate_part(compute::Engine& engine, const spec::TrainingSpec& spec,
                                        const EvaluationData::Part& part, uint64_t step,
                                        std::stop_token stop) {
  auto result = evaluate(engine, *part.dataset, spec, stop);
  if (!result) return result;
  const std::vector<compute::Metric>& metrics = result->metrics;
  const std::string problem = metrics_problem(spec.model.loss, metrics);
  const std::string text = fmt::format("{} at step {}: {}", part.name, step, metrics_text(metrics));
  if (problem.empty())
    log::info(text, result->json());
  else
    log::warning(text + ": " + problem, result->json());
  return result;
}

}  // namespace

std::optional<Evaluation> evaluate_validation(compute::Engine& engine, const Training& training,
                                              const EvaluationData& data, uint64_t step,
                                              std::stop_token stop) {
  const auto part = std::ranges::find(data.parts(), "validation", &EvaluationData::Part::name);
  return evaluate_part(engine, training.spec, *part, step, stop);
}

void write_evaluation(const std::filesystem::path& storage, const Json& evaluation) {
  if (storage.empty()) return;
  muster::create_directories(storage / "evaluations");
  write_file_atomically(storage / "evaluations" / (evaluation["step"].dump() + ".json"),
                        evaluation.dump(2) + "\n");
}

std::optional<Json> evaluate_step(compute::Engine& engine, const Training& training,
                                  const EvaluationData& data, const std::filesystem::path& storage,
                                  const checkpoint::Position& position, bool final,
                                  const ShowPicture& show, const Json& known, std::stop_token stop,
                                  const std::function<void(Json&)>& complete) {
  const uint64_t step = position.step;
  Json json = {{"step", step}, {"epoch", position.epoch}, {"final", final}};
  const size_t without_parts = json.size();
  for (const EvaluationData::Part& part : data.parts()) {
    if (part.name == "test" && !final) continue;
    if (known.contains(part.name) && known["step"] == step) {
      json[part.name] = known[part.name];
    } else if (!part.dataset) {
      json[part.name] = {{"error", part.problem}};
    } else {
      const auto evaluation = evaluate_part(engine, training.spec, part, step, stop);
      if (!evaluation) return std::nullopt;
      publish_pictures(storage, part.name, evaluation->pictures, show);
      json[part.name] = evaluation->json();
    }
  }
  if (complete) complete(json);
  if (json.size() > without_parts) write_evaluation(storage, json);
  return json;
}

}  // namespace muster::loop
