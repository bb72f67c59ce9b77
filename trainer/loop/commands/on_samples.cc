#include "trainer/loop/commands/on_samples.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/error.h"
#include "common/exit_code.h"
#include "trainer/compute/graph.h"
#include "trainer/compute/models/object_finder.h"
#include "trainer/data/batches/batcher.h"
#include "trainer/data/sources/sample_format.h"
#include "trainer/detection/objects.h"
#include "trainer/loop/commands/loaded_model.h"
#include "trainer/loop/evaluation/draw_objects.h"
#include "trainer/loop/evaluation/evaluation.h"

namespace muster::loop {

namespace fs = std::filesystem;

namespace {

// A model, and the data to use it on.
struct Loaded {
  LoadedModel model;
  std::unique_ptr<data::Dataset> dataset;
};

std::unique_ptr<data::Dataset> open_data(LoadedModel& model, const std::string& data) {
  spec::TrainingSpec& spec = model.training.spec;
  const auto& chosen = data == "test" ? spec.data.test : spec.data.validation;
  if (!chosen) {
    const char* other = data == "test" ? "validation" : "test";
    const bool has_other =
        data == "test" ? spec.data.validation.has_value() : spec.data.test.has_value();
    throw Invalid(model.file + ": expected " + data + " data in its training.data, found " +
                      (has_other ? other + std::string(" data; choose them by --data ") + other
                                 : "neither test nor validation data"),
                  kUsage);
  }
  take_label_count_from_layers(spec.model);
  use_preparation(model.training.spec.data, member(model.samples, "table"));
  return open_for(model.training, data, spec.model);
}

Loaded load(const fs::path& where, const std::string& data) {
  std::unique_ptr<data::Dataset> dataset;
  LoadedModel model =
      load_model(where, [&](LoadedModel& loading) { dataset = open_data(loading, data); });
  return {std::move(model), std::move(dataset)};
}

Json to_json(const detection::Box& box) {
  return {{"ymin", box.ymin}, {"xmin", box.xmin}, {"ymax", box.ymax}, {"xmax", box.xmax}};
}

// Returns the objects found in an image, by falling score, and the objects in its labels. Boxes are
// relative to the image; the image's size is in pixels of the file.
Json objects_json(std::span<const detection::Detection> found, const detection::ObjectList& labels,
                  const data::SampleFormat& names) {
  Json json = {{"height", labels.height()},
               {"width", labels.width()},
               {"predicted", Json::array()},
               {"objects", Json::array()}};
  const auto object = [&](int32_t label, const detection::Box& box) {
    return Json{{"class", names.class_name(static_cast<size_t>(label))},
                {"label", label},
                {"box", to_json(box)}};
  };
  for (const detection::Detection& one : found) {
    json["predicted"].push_back(object(one.label, one.box));
    json["predicted"].back()["score"] = one.score;
  }
  for (size_t i = 0; i < labels.size(); ++i)
    json["objects"].push_back(object(labels.at(i).label, labels.at(i).box));
  return json;
}

class SamplePredictor {
 public:
  SamplePredictor(Loaded& loaded, float least_score)
      : loaded_(loaded),
        format_(loaded.dataset->format()),
        measuring_(measuring_of(*loaded.dataset)),
        least_score_(least_score),
        batcher_(*loaded.dataset, 1),
        buffer_(*loaded.dataset, 1),
        outputs_(static_cast<size_t>(loaded.model.engine->output_count())) {
    const compute::ModelSpec& model = spec();
    if (const auto* detector = std::get_if<compute::SsdLoss>(&model.loss))
      finder_.emplace(*detector, compute::build_graph(model));
  }

  Json predict(uint64_t index) {
    const compute::Batch& batch = batcher_.fill(buffer_, 0, index);
    loaded_.model.engine->predict(batch, outputs_);
    Json json = {{"index", index}};
    if (finder_) {
      const auto floats = static_cast<size_t>(spec().label_count);
      const auto all = finder_->find(outputs_);
      json.update(objects_json(all.first(count_with_score(all, least_score_)),
                               detection::ObjectList({batch.targets[0], floats}), format_));
    } else if (compute::describe(spec().loss).labels == compute::LabelKind::classes) {
      const auto most = std::max_element(outputs_.begin(), outputs_.end());
      json["predicted"] = most - outputs_.begin();
      json["class"] = format_.class_name(static_cast<size_t>(most - outputs_.begin()));
      json["label"] = batch.labels[0];
      json["labelClass"] = format_.class_name(static_cast<size_t>(batch.labels[0]));
      json["probability"] = *most;
      json["probabilities"] = outputs_;
    } else {
      const auto targets = static_cast<size_t>(spec().label_count);
      for (size_t i = 0; i < outputs_.size(); ++i)
        json["predicted"].push_back(in_unit(i % targets, outputs_[i]));
      for (size_t i = 0; i < targets; ++i)
        json["target"].push_back(in_unit(i, batch.targets[0][i]));
    }
    return json;
  }

 private:
  Json in_unit(size_t target, float number) const {
    if (!measuring_.undo) return number;
    return measuring_.in_unit(target, number);
  }
  const compute::ModelSpec& spec() const { return loaded_.model.training.spec.model; }

  Loaded& loaded_;
  const data::SampleFormat format_;
  const compute::Measuring measuring_;
  const float least_score_;
  data::Batcher batcher_;
  data::BatchBuffer buffer_;
  std::vector<float> outputs_;
  std::optional<compute::ObjectFinder> finder_;  // only for a detector
};

}  // namespace

Json evaluate_checkpoint(const fs::path& where, const std::string& data) {
  Loaded loaded = load(where, data);
  spec::TrainingSpec& spec = loaded.model.training.spec;
  spec.summary_pictures = 0;
  const Evaluation evaluation = *evaluate(*loaded.model.engine, *loaded.dataset, spec);
  Json json = loaded.model.source;
  json["data"] = data;
  json["samples"] = evaluation.samples;
  json.update(evaluation.json());
  return json;
}

Json predict_checkpoint(const fs::path& where, const std::string& data,
                        const std::vector<int64_t>& indices, float least_score) {
  Loaded loaded = load(where, data);
  SamplePredictor predictor(loaded, least_score);
  Json list = Json::array();
  const auto samples = static_cast<int64_t>(loaded.dataset->size());
  for (const int64_t index : indices) {
    if (index < 0 || index >= samples)
      throw Invalid("--index: expected a sample from 0 to " + std::to_string(samples - 1) +
                        " of the " + data + " data, found " + std::to_string(index),
                    kUsage);
    list.push_back(predictor.predict(static_cast<uint64_t>(index)));
  }
  Json json = loaded.model.source;
  json.erase("step");
  json["data"] = data;
  json["predictions"] = list;
  return json;
}

}  // namespace muster::loop
