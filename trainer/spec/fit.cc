#include "trainer/spec/fit.h"

#include <fmt/format.h>

#include "common/json.h"
#include "trainer/compute/graph.h"
#include "trainer/compute/layers/layer.h"
#include "trainer/spec/convert.h"
#include "trainer/spec/layers.h"
#include "trainer/spec/selection.h"

namespace muster::spec {

namespace {

constexpr const char* kParts[] = {"train", "validation", "test"};

// Of a synthetic source; nothing of files.
std::optional<DataFacts> facts_by_manifest(const DataSource& source) {
  DataFacts facts;
  facts.samples = static_cast<uint64_t>(source.samples);
  switch (source.kind) {
    case SourceKind::idx:
      return std::nullopt;
    case SourceKind::synthetic_linear:
      facts.sample_shape = {1};
      facts.label_count = 1;
      break;
    case SourceKind::synthetic_classes:
      facts.sample_shape = source.shape;
      facts.label_count = source.classes;
      break;
  }
  return facts;
}

class Fit {
 public:
  Fit(const std::string& path, const Json& training, Problems& problems, const LookUp& look_up)
      : path_(path), training_(training), problems_(problems), look_up_(look_up) {}

  void run() {
    for (const char* part : kParts) open(part);
    check_remainder();
    if (!member(training_, "model").is_object() || !problems_.is_whole(at("model"))) return;
    model_ = to_model(member(training_, "model"));
    for (const auto& [part, found] : found_) check_shape(part, found);
    const compute::GraphCheck graph = compute::check_graph(model_);
    for (const compute::Misfit& misfit : graph.misfits) report(misfit);
    if (model_.label_count == 0) model_.label_count = graph.outputs;
    for (const auto& [part, found] : found_) check_labels(part, found);
  }

 private:
  // A source of which something is known.
  struct Found {
    DataSource source;
    DataFacts facts;
  };

  std::string at(const std::string& relative) const {
    return path_.empty() ? relative : path_ + "." + relative;
  }

  static std::string path_in(const std::string& part, const Found& found, const char* of_files,
                             const char* of_classes) {
    const std::string relative = "data." + part;
    if (found.source.kind == SourceKind::idx) return relative + ".idx." + of_files;
    if (found.source.kind == SourceKind::synthetic_linear) return relative + ".syntheticLinear";
    return relative + ".syntheticClasses." + of_classes;
  }

  void open(const std::string& part) {
    const std::string relative = "data." + part;
    const Json& value = member(member(training_, "data"), part);
    if (!value.is_object() || !problems_.is_whole(at(relative))) return;
    Found found{to_source(value, part == "train"), {}};
    std::optional<DataFacts> facts = facts_by_manifest(found.source);
    if (!facts && look_up_) facts = look_up_(part, found.source);
    if (!facts) return;
    if (!facts->malformed.empty()) {
      problems_.report(at(relative + ".idx"), "IDX files that can be read", facts->malformed);
      return;
    }
    found.facts = std::move(*facts);
    const auto selected = select(Selection::of(found.source), found.facts.samples);
    if (const auto* wrong = std::get_if<Unselectable>(&selected)) {
      problems_.report(at(relative + "." + wrong->field), wrong->expected, wrong->found);
    } else if (part == "train") {
      train_samples_ = std::get<Selected>(selected).count;
    }
    found_.emplace_back(part, std::move(found));
  }

  void check_remainder() {
    const bool drop = bool_or(training_, "dropRemainder", false);
    const int64_t batch = integer_or(training_, "batchSize", 1);
    if (!drop || !train_samples_ || !problems_.is_sound(at("batchSize"))) return;
    if (batch < 1 || static_cast<uint64_t>(batch) <= *train_samples_) return;
    problems_.report(at("batchSize"),
                     fmt::format("at most {}, the samples of data.train, for dropRemainder leaves "
                                 "out a batch that is not full",
                                 *train_samples_),
                     std::to_string(batch));
  }

  // The training data decide what the model leaves open.
  void check_shape(const std::string& part, const Found& found) {
    const std::optional<int64_t> width = compute::element_count(found.facts.sample_shape);
    const std::string shape_path = at(path_in(part, found, "images", "shape"));
    if (!width) {
      problems_.report(shape_path, compute::kCountable,
                       compute::to_string(found.facts.sample_shape));
      return;
    }
    if (part == "train" && model_.label_count == 0) model_.label_count = found.facts.label_count;
    if (part == "train" && model_.input_shape.empty()) {
      model_.input_shape = {*width};
      from_train_ = true;
    }
    if (model_.input_shape.empty()) return;
    const std::optional<int64_t> wanted = compute::element_count(model_.input_shape);
    if (!wanted || wanted == width) return;  // what cannot be counted, the graph's check reports
    problems_.report(
        shape_path,
        fmt::format("samples of {} elements, {}", *wanted,
                    from_train_ ? "as data.train has" : "as the model " + model_.name + " takes"),
        fmt::format("{} ({})", *width, compute::to_string(found.facts.sample_shape)));
  }

  void check_labels(const std::string& part, const Found& found) {
    const int64_t outputs = model_.label_count, labels = found.facts.label_count;
    if (outputs == 0 || labels <= outputs) return;
    problems_.report(
        at(path_in(part, found, "labels", "classes")),
        fmt::format("at most {} classes, one for each output of the model", outputs),
        found.facts.largest_label.empty() ? std::to_string(labels) : found.facts.largest_label);
  }

  void report(const compute::Misfit& misfit) {
    std::string path = at("model");
    if (misfit.layer >= 0) {
      const auto index = static_cast<size_t>(misfit.layer);
      const Json& layers = member(member(training_, "model"), "layers");
      path = child_path(path + ".layers", index);
      if (index < layers.size()) path = child_path(path, layer_kind(layers[index]));
      if (!misfit.field.empty()) path += "." + misfit.field;
    }
    problems_.report(path, misfit.expected, misfit.found);
  }

  const std::string& path_;
  const Json& training_;
  Problems& problems_;
  const LookUp& look_up_;
  std::vector<std::pair<std::string, Found>> found_;  // train first
  std::optional<uint64_t> train_samples_;
  compute::ModelSpec model_;
  bool from_train_ = false;  // model_.input_shape
};

}  // namespace

void check_fit(const Document& document, const std::string& path, Problems& problems,
               const LookUp& look_up) {
  const Json* training = document.find(path);
  if (training == nullptr || !training->is_object()) return;
  Fit(path, *training, problems, look_up).run();
}

std::vector<std::string> training_notes(const Document& document, const std::string& path) {
  const Json* training = document.find(path);
  if (training == nullptr || training->is_null()) return {};
  const Json& layers = member(member(*training, "model"), "layers");
  if (!layers.is_array() || layers.empty()) return {};
  const compute::GraphCheck graph = compute::check_graph(to_model(member(*training, "model")));
  if (!graph.softmax_of_softmax && !graph.ends_in_softmax) return {};
  const std::string last = child_path(child_path(path, "model") + ".layers", layers.size() - 1);
  const std::string start = document.locate(last) + ": " + last + ": ";
  if (graph.softmax_of_softmax) {
    return {start +
            "the loss softmaxCrossEntropy takes the softmax of what is a softmax already; "
            "such a model learns slowly"};
  }
  return {start +
          "this softmax is the one that the loss softmaxCrossEntropy takes; it is computed "
          "once"};
}

}  // namespace muster::spec
