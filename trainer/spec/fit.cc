#include "trainer/spec/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "common/documents/json.h"
#include "trainer/compute/fusion.h"
#include "trainer/compute/graph.h"
#include "trainer/compute/layers/layer.h"
#include "trainer/compute/loss.h"
#include "trainer/compute/step_memory.h"
#include "trainer/spec/convert.h"
#include "trainer/spec/layers.h"
#include "trainer/spec/metric.h"
#include "trainer/spec/open_classes.h"
#include "trainer/spec/patterns.h"
#include "trainer/spec/selection.h"

namespace muster::spec {

namespace {

constexpr const char* kParts[] = {"train", "validation", "test"};

class Fit {
 public:
  Fit(const std::string& path, const Json& training, Problems& problems, const LookUp& look_up)
      : path_(path), training_(training), problems_(problems), look_up_(look_up) {}

  // The results of run(), as far as it could find them.
  const compute::ModelSpec& model() const { return model_; }
  bool knows_classes() const { return knows_classes_; }
  const std::optional<uint64_t>& train_samples() const { return train_samples_; }
  // Returns the notes on the data, each with the path of its source.
  std::vector<std::pair<std::string, std::string>> data_notes() const {
    std::vector<std::pair<std::string, std::string>> notes;
    for (const auto& [part, found] : found_)
      for (const std::string& note : found.facts.notes)
        notes.emplace_back(at("data." + part + "." + words_of(found.source).name), note);
    return notes;
  }

  void run() {
    const Json& model = member(training_, "model");
    const bool is_sound = model.is_object() && problems_.is_whole(at("model"));
    const bool is_open = leaves_classes_open(model);
    if (is_sound && !is_open) model_ = to_model(model);
    for (const char* part : kParts) open(part);
    check_remainder();
    if (!is_sound) return;
    if (is_open) take_classes(model);
    check_frozen(at("model.freeze"), member(model, "freeze"), model_, problems_);
    for (const auto& [part, found] : found_) check_shape(part, found);
    const compute::GraphCheck graph = compute::check_graph(model_);
    for (const compute::Mismatch& mismatch : graph.mismatches) report(mismatch);
    if (model_.label_count == 0)
      model_.label_count = graph.outputs / compute::outputs_for_each(model_.loss);
    for (const auto& [part, found] : found_) check_labels(part, found);
    check_measured();
    const bool known = knows_classes_ && !model_.input_shape.empty() && model_.label_count > 0;
    if (known && graph.mismatches.empty()) check_precision();
  }

 private:
  // A source with known facts.
  struct Found {
    DataSource source;
    DataFacts facts;
  };

  std::string at(const std::string& relative) const {
    return path_.empty() ? relative : path_ + "." + relative;
  }

  // `field` is one of the fields of SourceWords.
  static std::string path_in(const std::string& part, const Found& found,
                             const char* SourceWords::*field) {
    const SourceWords& words = words_of(found.source);
    const IdxSource* idx = found.source.idx();
    const std::string own = idx != nullptr && idx->listed ? "files" : words.*field;
    return "data." + part + "." + words.name + (own.empty() ? "" : "." + own);
  }

  void open(const std::string& part) {
    const std::string relative = "data." + part;
    const Json& value = member(member(training_, "data"), part);
    if (!value.is_object() || !problems_.is_whole(at(relative))) return;
    Found found{to_source_for(model_, value, part == "train"), {}};
    if (!decide_features(part, found.source)) return;
    const SourceWords& words = words_of(found.source);
    std::optional<DataFacts> facts;
    if (look_up_ && *words.files != 0) facts = look_up_(part, found.source);
    if (!facts) facts = facts_by_manifest(found.source);
    if (!facts) return;
    if (!facts->malformed.empty()) {
      // Several parts may have the same file, for example a label map.
      if (malformed_.insert(facts->malformed).second)
        problems_.report(at(relative + "." + words.name),
                         std::string(words.files) + " that can be read", facts->malformed);
      return;
    }
    found.facts = std::move(*facts);
    if (part == "train" && found.facts.without_objects)
      problems_.report(at(relative + "." + words.name), "an object to learn in one of the images",
                       "none, or crowds only");
    if (found.facts.samples > 0) select_from(part, relative, found);
    found_.emplace_back(part, std::move(found));
  }

  // Gives a table for evaluation the training data that decide its features. Returns false if they
  // are not sound, or no table.
  bool decide_features(const std::string& part, DataSource& source) const {
    const Json& train = member(member(training_, "data"), "train");
    if (part == "train" || source.table() == nullptr) return true;
    if (!train.is_object() || !problems_.is_whole(at("data.train"))) return false;
    train_on(to_source_for(model_, train, true), source);
    return source.table()->trained_on != nullptr;
  }

  // Gives the model as many classes as the training data have.
  void take_classes(Json model) {
    const bool has_train = !found_.empty() && found_.front().first == "train";
    const DataFacts facts = has_train ? found_.front().second.facts : DataFacts{};
    knows_classes_ = facts.label_count > 0;
    if (knows_classes_)
      model["classes"] = facts.label_count;
    else if (facts.samples > 0)
      problems_.report(at("model.classes"), kExpectedClasses, "none");
    model_ = to_model(model);
  }

  void select_from(const std::string& part, const std::string& relative, const Found& found) {
    const auto selected = select(Selection::of(found.source), found.facts.samples);
    if (const auto* wrong = std::get_if<Unselectable>(&selected)) {
      problems_.report(at(relative + "." + wrong->field), wrong->expected, wrong->found);
    } else if (part == "train") {
      train_samples_ = std::get<Selected>(selected).count;
    }
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

  void check_precision() {
    if (string_or(training_, "precision", "") != "bfloat16") return;
    if (!compute::find_fusions(compute::build_graph(model_)).empty()) return;
    problems_.report(at("precision"),
                     "float32 for a model without convolutions whose outputs are batch normalized "
                     "and read by convolutions: only these values are kept as bfloat16",
                     "\"bfloat16\"");
  }

  // The training data decide the values that the model leaves open.
  void check_shape(const std::string& part, const Found& found) {
    const std::vector<int64_t>& shape = found.facts.sample_shape;
    const std::optional<int64_t> width = compute::element_count(shape);
    const std::string shape_path = at(path_in(part, found, &SourceWords::shape));
    if (!width) {
      problems_.report(shape_path, compute::kCountable, compute::to_string(shape));
      return;
    }
    if (part == "train")
      check_stages(found.source.augment, shape, found.source.images() != nullptr);
    if (part == "train" && model_.label_count == 0) model_.label_count = found.facts.label_count;
    if (wanted_.empty()) wanted_ = model_.input_shape;
    if (part == "train" && wanted_.empty()) {
      wanted_ = shape;
      model_.input_shape = shape;
      from_train_ = true;
    }
    if (!wanted_.empty()) compare(shape_path, shape, *width);
  }

  void check_stages(const std::vector<StageKind>& stages, const std::vector<int64_t>& shape,
                    bool decoded) {
    for (size_t i = 0; i < stages.size(); ++i) {
      const auto mismatch = mismatch_of(stages[i], shape, decoded);
      if (!mismatch) continue;
      const std::string field = mismatch->field.empty() ? "" : "." + mismatch->field;
      problems_.report(at(child_path("data.train.augment", i) + field), mismatch->expected,
                       mismatch->found);
    }
  }

  // Images of one channel are the same with and without the axis of channels.
  static std::vector<int64_t> without_one_channel(std::vector<int64_t> shape) {
    if (shape.size() == 3 && shape.back() == 1) shape.pop_back();
    return shape;
  }

  void compare(const std::string& path, const std::vector<int64_t>& shape, int64_t width) {
    const std::string because =
        from_train_ ? "as data.train has" : "as the model " + model_.name + " takes";
    const std::optional<int64_t> count = compute::element_count(wanted_);
    if (!count) return;  // the graph's check reports it
    if (*count != width) {
      problems_.report(path, fmt::format("samples of {} elements, {}", *count, because),
                       fmt::format("{} ({})", width, compute::to_string(shape)));
      return;
    }
    const bool is_flat = shape.size() < 2 || wanted_.size() < 2;
    if (is_flat || without_one_channel(shape) == without_one_channel(wanted_)) return;
    problems_.report(path, fmt::format("samples of {}, {}", compute::to_string(wanted_), because),
                     compute::to_string(shape));
  }

  void check_labels(const std::string& part, const Found& found) {
    check_class_names(part, found);
    if (!knows_classes_) return;
    const auto* detector = std::get_if<compute::SsdLoss>(&model_.loss);
    const int64_t outputs = detector != nullptr ? detector->classes : model_.label_count;
    const int64_t labels = found.facts.label_count;
    if (outputs == 0 || labels <= outputs) return;
    problems_.report(
        at(path_in(part, found, &SourceWords::labels)),
        fmt::format("at most {} classes, one for each output of the model", outputs),
        found.facts.largest_label.empty() ? std::to_string(labels) : found.facts.largest_label);
  }

  // The metrics by which evaluations decide must be ones that the validation data can give.
  void check_measured() {
    const auto validation =
        std::ranges::find(found_, "validation", &std::pair<std::string, Found>::first);
    if (validation == found_.end() || !std::holds_alternative<compute::SsdLoss>(model_.loss))
      return;
    const Found& found = validation->second;
    check_measured("earlyStopping", member(training_, "earlyStopping"), kDefaultMetric, found);
    check_measured("checkpoint.bestOnly", member(member(training_, "checkpoint"), "bestOnly"),
                   kDefaultMetric, found);
    check_measured("stopWhen", member(training_, "stopWhen"), kTrainLoss, found);
  }

  // `rule` is the object at `relative`; `by_default` is its metric if it names none.
  void check_measured(const std::string& relative, const Json& rule, const char* by_default,
                      const Found& found) {
    const std::string path = at(relative + ".metric");
    if (!rule.is_object() || !problems_.is_sound(path)) return;
    const std::string metric = string_or(rule, "metric", by_default);
    const bool lacks_size =
        std::ranges::any_of(found.facts.sizes_without_objects,
                            [&](const std::string& size) { return metric.ends_with(size); });
    if (metric == kTrainLoss || !(lacks_size || found.facts.without_objects)) return;
    problems_.report(path, "a metric that data.validation can give",
                     fmt::format("\"{}\", for which its {} have no objects", metric,
                                 words_of(found.source).files));
  }

  // Classes are numbered by their names, so other names would be other classes.
  void check_class_names(const std::string& part, const Found& found) {
    const auto& [first_part, first] = found_.front();
    const std::vector<std::string>&known = first.facts.classes, &names = found.facts.classes;
    if (first_part != "train" || known.empty() || names.empty() || known == names) return;
    size_t i = 0;
    while (i < known.size() && i < names.size() && known[i] == names[i]) ++i;
    const auto name = [&](const std::vector<std::string>& list) {
      return i < list.size()
                 ? fmt::format("{} classes, of which number {} is \"{}\"", list.size(), i, list[i])
                 : fmt::format("{} classes", list.size());
    };
    problems_.report(at(path_in(part, found, &SourceWords::labels)),
                     "the classes of data.train: " + name(known), name(names));
  }

  void report(const compute::Mismatch& mismatch) {
    std::string path = at("model");
    if (mismatch.layer >= 0) {
      const auto index = static_cast<size_t>(mismatch.layer);
      const Json& layers = member(member(training_, "model"), "layers");
      path = child_path(path + ".layers", index);
      if (index < layers.size()) path = child_path(path, layer_kind(layers[index]));
      if (!mismatch.field.empty()) path += "." + mismatch.field;
    }
    problems_.report(path, mismatch.expected, mismatch.found);
  }

  const std::string& path_;
  const Json& training_;
  Problems& problems_;
  const LookUp& look_up_;
  std::vector<std::pair<std::string, Found>> found_;  // train first
  std::set<std::string> malformed_;                   // the reasons that were reported
  std::optional<uint64_t> train_samples_;
  compute::ModelSpec model_;
  bool knows_classes_ = true;    // false: the training data decide them, and are not here
  std::vector<int64_t> wanted_;  // shape of a sample; a shape with one axis accepts any shape
  bool from_train_ = false;      // whether wanted_ is that of the training data
};

}  // namespace

void check_fit(const Document& document, const std::string& path, Problems& problems,
               const LookUp& look_up) {
  const Json* training = document.find(path);
  if (training == nullptr || !training->is_object()) return;
  Fit(path, *training, problems, look_up).run();
}

std::optional<compute::ModelSpec> model_on_data(const Document& document, const std::string& path,
                                                const LookUp& look_up) {
  Problems problems(document);
  Fit fit(path, *document.find(path), problems, look_up);
  fit.run();
  const bool is_known = fit.knows_classes() && !fit.model().input_shape.empty();
  if (!problems.empty() || !is_known) return std::nullopt;
  return fit.model();
}

namespace {

std::string note_of_function(const Document& document, const std::string& path,
                             const Json& training) {
  const Json& layers = member(member(training, "model"), "layers");
  if (!layers.is_array() || layers.empty()) return "";
  const compute::ModelSpec model = to_model(member(training, "model"));
  const compute::GraphCheck graph = compute::check_graph(model);
  const std::string& loss = compute::describe(model.loss).name;
  if (!graph.computes_twice && !graph.leaves_to_loss) return "";
  const std::string function =
      compute::describe(model.loss).function == compute::OutputFunction::softmax ? "softmax"
                                                                                 : "sigmoid";
  const std::string last = child_path(child_path(path, "model") + ".layers", layers.size() - 1);
  return document.locate(last) + ": " + last + ": " +
         (graph.computes_twice ? "the loss " + loss + " takes the " + function + " of what is a " +
                                     function + " already; such a model learns slowly"
                               : "this " + function + " is the one that the loss " + loss +
                                     " takes; it is computed once");
}

std::string note_of_batch(const Document& document, const std::string& path, const Json& training,
                          const Fit& fit) {
  const int64_t batch = integer_or(training, "batchSize", 1);
  const std::optional<uint64_t>& samples = fit.train_samples();
  if (!samples || batch < 1 || static_cast<uint64_t>(batch) <= *samples) return "";
  const std::string field = child_path(path, "batchSize");
  return fmt::format(
      "{}: {}: {} is more than the {} samples of data.train: a batch is a whole epoch",
      document.locate(field), field, batch, *samples);
}

// Returns a note if stopWhen waits for a high value of a metric that falls while a model learns, or
// the other way round.
std::string note_of_stop(const Document& document, const std::string& path,
                         const TrainingSpec& spec) {
  if (!spec.stop_when) return "";
  const StopWhenSpec& stop = *spec.stop_when;
  const bool falls = stop.metric == kTrainLoss ||
                     metric_of(spec.model.loss, stop.metric).better == compute::Better::lower;
  if (falls != stop.at_least) return "";
  const std::string field = child_path(path, "stopWhen");
  return fmt::format(
      "{}: {}: {} {} while a model learns, so that {} may end the training after its "
      "first {}; {} ends it when the model is good enough",
      document.locate(field), field, stop.metric, falls ? "falls" : "rises",
      stop.at_least ? "atLeast" : "atMost", stop.by_training() ? "epoch" : "evaluation",
      stop.at_least ? "atMost" : "atLeast");
}

// Pixels become numbers as byte * scale + offset.
struct Scaling {
  float scale, offset;
  bool operator==(const Scaling&) const = default;
};

std::optional<Scaling> scaling_of(const DataSource& source) {
  if (const IdxSource* idx = source.idx()) return Scaling{idx->scale, 0};
  if (const ImageSettings* images = source.images()) return Scaling{images->scale, images->offset};
  return std::nullopt;
}

// Returns a note if data for evaluation are scaled differently from the training data.
std::string note_of_scaling(const Document& document, const std::string& path,
                            const std::string& part, const DataSource& train,
                            const std::optional<DataSource>& other) {
  if (!other) return "";
  const auto expected = scaling_of(train), found = scaling_of(*other);
  if (!expected || !found || *expected == *found) return "";
  const std::string field = child_path(path, "data") + "." + part + "." + words_of(*other).name;
  return fmt::format(
      "{}: {}: its pixels are scaled otherwise than those of data.train: * {:g} + {:g}, and not * "
      "{:g} + {:g}",
      document.locate(field), field, found->scale, found->offset, expected->scale,
      expected->offset);
}

}  // namespace

std::vector<std::string> training_notes(const Document& document, const std::string& path,
                                        const LookUp& look_up) {
  const Json* training = document.find(path);
  if (training == nullptr || training->is_null()) return {};
  const TrainingSpec spec = to_training_spec(*training);
  const DataSpec& data = spec.data;
  Problems problems(document);
  Fit fit(path, *training, problems, look_up);
  fit.run();
  std::vector<std::string> notes = {
      note_of_function(document, path, *training), note_of_batch(document, path, *training, fit),
      note_of_stop(document, path, spec),
      note_of_scaling(document, path, "validation", data.train, data.validation),
      note_of_scaling(document, path, "test", data.train, data.test)};
  std::erase(notes, "");
  for (const auto& [field, note] : fit.data_notes())
    notes.push_back(document.locate(field) + ": " + field + ": " + note);
  return notes;
}

std::string note_of_memory(const Document& document, const std::string& path,
                           const LookUp& look_up) {
  const Json* training = document.find(path);
  if (training == nullptr || training->is_null()) return "";
  const auto model = model_on_data(document, path, look_up);
  if (!model) return "";
  const TrainingSpec spec = to_training_spec(*training);
  const double megabytes = 1e-6 * static_cast<double>(compute::step_memory(
                                      compute::build_graph(*model), spec.batch_size, spec.optimizer,
                                      spec.precision, std::max(1, spec.threads)));
  if (megabytes < 100) return "";
  const std::string field = child_path(path, "batchSize");
  return fmt::format("{}: {}: a step of {} rows works in about {:.0f} MB, besides its samples",
                     document.locate(field), field, spec.batch_size, megabytes);
}

}  // namespace muster::spec
