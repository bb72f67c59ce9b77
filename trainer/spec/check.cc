#include "trainer/spec/check.h"

#include <algorithm>

#include "common/documents/json.h"
#include "common/error.h"
#include "common/exit_code.h"
#include "common/job/metric_name.h"
#include "common/text/pattern.h"
#include "trainer/compute/loss.h"
#include "trainer/spec/convert.h"
#include "trainer/spec/fit.h"
#include "trainer/spec/kind_fields.h"
#include "trainer/spec/layers.h"
#include "trainer/spec/metric.h"
#include "trainer/spec/patterns.h"
#include "trainer/spec/schema.h"

namespace muster::spec {

namespace {

constexpr int64_t kMaxSampleFeatures = int64_t{1} << 24;

using compute::LabelKind;

class Checker {
 public:
  Checker(const Document& document, const std::string& path, const Json& training,
          Problems& problems)
      : document_(document), path_(path), training_(training), problems_(problems) {}

  void run() {
    check_model();
    check_initialization();
    for (const char* part : {"train", "validation", "test"}) check_source(part);
    check_stages();
    check_optimizer();
    check_schedule();
    check_synchronization();
    check_shard();
    check_evaluation();
  }

  // Checks the block itself. Call this last, because a problem of the block itself makes everything
  // in the block count as unsound.
  void check_length() { check_one_of("", training_, {"epochs", "steps"}, true); }

 private:
  std::string at(const std::string& relative) const {
    return path_.empty() || relative.empty() ? path_ + relative : path_ + "." + relative;
  }
  bool is_sound(const std::string& relative) const { return problems_.is_sound(at(relative)); }

  void report(const std::string& relative, std::string expected, std::string found) {
    problems_.report(at(relative), std::move(expected), std::move(found));
  }

  // Checks that exactly one (`required`), or at most one, of the fields is given; returns whether
  // it is.
  bool check_one_of(const std::string& relative, const Json& value,
                    const std::vector<std::string>& fields, bool required) {
    std::vector<std::string> found;
    bool sound = true;
    for (const std::string& field : fields) {
      if (given(value, field.c_str())) found.push_back(field);
      sound = sound && is_sound(relative.empty() ? field : relative + "." + field);
    }
    if (found.size() == 1 || (found.empty() && !required)) return true;
    if (found.empty() && !sound) return false;
    report(relative, (required ? "exactly one of " : "at most one of ") + join(fields),
           found.empty() ? "none of them" : join(found));
    return false;
  }

  void check_model() {
    const Json& model = member(training_, "model");
    if (!model.is_object()) return;
    if (given(model, "name") && given(model, "loss")) {
      report("model.loss", "no loss beside a model's name, which has its own",
             describe(member(model, "loss")));
    }
    check_loss_options(model);
    const bool softmax = string_or(model, "classificationLoss", "sigmoid") == "softmax";
    if (given(model, "logitScale") && !softmax && is_sound("model.classificationLoss"))
      report("model.logitScale", "no logitScale without the classificationLoss softmax",
             describe(member(model, "logitScale")));
    if (is_sound("model.name"))
      check_kind("model", model, model_fields(), string_or(model, "name", "layers"));
    check_layers(document_, at("model.layers"), problems_);
    check_patterns(at("model.freeze"), member(model, "freeze"), problems_);
    check_one_of("model", model, {"name", "layers"}, true);
  }

  // Reports each path in `value`, which a shell would have changed. Names of classes are no paths.
  void check_paths(const std::string& relative, const Json& value) {
    static const Pattern shell("^(~|\\$[({]?[A-Za-z_][A-Za-z0-9_]*[)}]?)(/|$)");
    if (value.is_string() && shell.matches(value.get<std::string>())) {
      const std::string path = value.get<std::string>();
      const std::string word = path.substr(0, path.find('/'));
      report(relative, "the whole path, for '" + word + "' is not expanded here", "'" + path + "'");
    } else if (value.is_array()) {
      for (size_t i = 0; i < value.size(); ++i) check_paths(child_path(relative, i), value[i]);
    } else if (value.is_object()) {
      for (const auto& [key, field] : value.items())
        if (key != "classes" && key != "columns" && key != "target")
          check_paths(child_path(relative, key), field);
    }
  }

  void check_initialization() {
    static const Pattern url("^[A-Za-z][A-Za-z0-9+.-]+:/");
    check_paths("initializeFrom", member(training_, "initializeFrom"));
    const std::string from = string_or(training_, "initializeFrom", "");
    if (url.matches(from))
      report(
          "initializeFrom",
          "the path of a file or folder, for Muster fetches nothing: download it to where the job "
          "reads its data",
          "the URL '" + from + "'");
    const Json& options = member(training_, "initializeOptions");
    if (!options.is_object()) return;
    if (!given(training_, "initializeFrom") && is_sound("initializeFrom"))
      report("initializeOptions", "initializeFrom beside initializeOptions", "none");
    check_renames(at("initializeOptions.rename"), member(options, "rename"), problems_);
    for (const char* field : {"include", "exclude"})
      check_patterns(at(child_path("initializeOptions", field)), member(options, field), problems_);
  }

  void check_loss_options(const Json& model) {
    const Json& options = member(model, "lossOptions");
    if (options.is_null()) return;
    if (given(model, "name")) {
      report("model.lossOptions",
             "no lossOptions beside a model's name, which has a loss of its own",
             describe(options));
    } else if (const auto* loss = this->loss()) {
      check_kind("model.lossOptions", options, loss_fields(), loss->name);
      check_one_of("model.lossOptions", options, {"quantile", "quantiles"}, false);
      check_rising("model.lossOptions.quantiles", member(options, "quantiles"), "a share above ");
    }
  }

  // Checks that each field belongs to the object's kind.
  void check_kind(const std::string& relative, const Json& object,
                  const std::vector<KindField>& fields, const std::string& kind) {
    for (const auto& [field, kinds] : fields) {
      if (!given(object, field) || std::ranges::find(kinds, kind) != kinds.end()) continue;
      report(child_path(relative, field),
             "no such field for " + kind + " (it belongs to " + join(kinds) + ")",
             describe(member(object, field)));
    }
  }

  // Returns null if the loss is not known.
  const compute::LossDescription* loss() const {
    if (!is_sound("model.name") || !is_sound("model.loss")) return nullptr;
    return &compute::describe(to_loss(member(training_, "model")));
  }

  void check_source(const std::string& part) {
    const std::string relative = "data." + part;
    const Json& source = member(member(training_, "data"), part);
    if (!source.is_object()) return;
    std::vector<std::string> kinds;
    const SourceWords* kind = nullptr;
    for (const SourceWords& words : source_words()) {
      kinds.emplace_back(words.name);
      if (given(source, words.name)) kind = &words;
    }
    if (!check_one_of(relative, source, kinds, true)) return;
    check_paths(child_path(relative, kind->name), member(source, kind->name));
    check_files(member(source, "idx"), relative + ".idx");
    check_features(source, relative + ".syntheticClasses.shape");
    check_record_files(member(source, "tfRecord"), relative + ".tfRecord");
    check_keys(member(source, "tfRecord"), relative + ".tfRecord");
    check_record_files(member(source, "table"), relative + ".table");
    check_rows(member(source, "table"), relative + ".table");
    const auto* loss = this->loss();
    if (!loss) return;
    LabelKind labels = kind->label_kind;
    if (string_or(member(source, "tfRecord"), "labels", "class") == "objects")
      labels = LabelKind::objects;
    if (given(source, "table")) labels = check_table(relative, *loss);
    if (given(member(source, "table"), "ranking") && loss->labels != LabelKind::floats)
      report(relative + ".table.ranking", "no ranking of classes" + for_loss(*loss),
             describe(member(member(source, "table"), "ranking")));
    if (labels == loss->labels) return;
    report(relative, compute::words_of(loss->labels) + for_loss(*loss),
           labels == LabelKind::classes ? "a source with classes"
           : labels == LabelKind::floats
               ? std::string(kind->name) + ", which has numbers"
               : std::string(kind->name) + ", which has objects with boxes");
  }

  void check_files(const Json& idx, const std::string& relative) {
    if (!idx.is_object()) return;
    std::vector<std::string> found;
    for (const char* field : {"images", "labels", "files"}) {
      if (given(idx, field)) found.push_back(field);
      if (!is_sound(relative + "." + field)) return;
    }
    const bool one = given(idx, "images") && given(idx, "labels");
    if (found.size() == (one ? 2 : 1) && one != given(idx, "files")) return;
    report(relative, "either images and labels, or files",
           found.empty() ? "none of them" : join(found));
  }

  void check_record_files(const Json& records, const std::string& relative) {
    if (!records.is_object() || !is_sound(relative + ".files") || !is_sound(relative + ".fileList"))
      return;
    const bool both = given(records, "files");
    if (both == given(records, "fileList"))
      report(relative, "either files or fileList", both ? "both" : "neither");
  }

  // Checks which rows of a table are samples, and what is learnt.
  void check_rows(const Json& table, const std::string& relative) {
    if (!table.is_object()) return;
    std::vector<std::string> orders;
    if (bool_or(table, "mixed", false)) orders.emplace_back("mixed");
    for (const char* field : {"orderBy", "groupBy"})
      if (given(table, field)) orders.emplace_back(field);
    if (orders.size() > 1)
      report(relative, "at most one of mixed, orderBy and groupBy", join(orders));
    const Json& target = member(table, "target");
    if (!target.is_object() || !is_sound(relative + ".target")) return;
    const bool several = given(target, "columns");
    if (several == given(target, "column"))
      report(relative + ".target", "either column or columns", several ? "both" : "neither");
    else if (several && string_or(target, "kind", "number") == "class")
      report(relative + ".target", "column, for only numbers may be several targets", "columns");
  }

  // Checks a table at `relative` and returns the kind of its labels: that of the training data's
  // target.
  LabelKind check_table(const std::string& relative, const compute::LossDescription& loss) {
    const Json& train = member(member(member(training_, "data"), "train"), "table");
    if (!train.is_object() && is_sound("data.train"))
      report(relative + ".table", "a table as data.train too, which decides the features",
             "another source there");
    const bool classes = loss.labels == LabelKind::classes;
    const Json& target = member(train, "target");
    const std::string kind =
        string_or(target, "kind", classes && !given(target, "columns") ? "class" : "number");
    return kind == "class" ? LabelKind::classes : LabelKind::floats;
  }

  // Features with objects have fixed names, and the labels of objects begin at 1.
  void check_keys(const Json& records, const std::string& relative) {
    if (!records.is_object() || string_or(records, "labels", "class") != "objects") return;
    const RecordSource usual;
    const char* odd =
        string_or(records, "imageKey", usual.image_key) != usual.image_key   ? "imageKey"
        : string_or(records, "labelKey", usual.label_key) != usual.label_key ? "labelKey"
        : integer_or(records, "firstLabel", 1) != 1                          ? "firstLabel"
                                                                             : nullptr;
    if (odd != nullptr)
      report(relative, "imageKey, labelKey and firstLabel only for labels: class",
             std::string(odd) + " with labels: objects");
  }

  void check_features(const Json& source, const std::string& relative) {
    if (!problems_.is_whole(at(relative))) return;
    int64_t features = 1;
    for (const Json& axis : member(member(source, "syntheticClasses"), "shape")) {
      if (!axis.is_number_integer() || features > kMaxSampleFeatures) break;
      const int64_t size = axis.get<int64_t>();
      features = size < 1 || size > kMaxSampleFeatures ? kMaxSampleFeatures + 1 : features * size;
    }
    if (features > kMaxSampleFeatures) {
      report(relative, "at most " + std::to_string(kMaxSampleFeatures) + " features a sample",
             "more");
    }
  }

  void check_stages() {
    const std::string relative = "data.train.augment";
    const Json& stages = member(member(member(training_, "data"), "train"), "augment");
    for (size_t i = 0; stages.is_array() && i < stages.size(); ++i) {
      const std::string path = child_path(relative, i);
      for (const char* field : {"area", "aspect"})
        check_range(member(stages[i], "randomCrop"), path + ".randomCrop", field);
      for (const char* field : {"saturation", "contrast"})
        check_range(member(stages[i], "colour"), path + ".colour", field);
    }
  }

  void check_range(const Json& stage, const std::string& relative, const char* field) {
    const Json& range = member(stage, field);
    if (!range.is_array() || range.size() != 2 || !problems_.is_whole(at(relative))) return;
    if (range[0] <= range[1]) return;
    report(child_path(relative, field), "the least before the most", describe(range));
  }

  void check_optimizer() {
    const Json& optimizer = member(training_, "optimizer");
    if (!is_sound("optimizer.name")) return;
    const std::string rule = string_or(optimizer, "name", "adam");
    check_kind("optimizer", optimizer, optimizer_fields(), rule);
    const double momentum = number_or(optimizer, "momentum", rule == "momentum" ? 0.9 : 0.0);
    if (is_sound("optimizer.momentum") && bool_or(optimizer, "nesterov", false) && momentum == 0 &&
        (rule == "sgd" || rule == "momentum")) {
      report("optimizer.nesterov", "a momentum above 0 beside nesterov", "none");
    }
    check_one_of("optimizer", optimizer, {"clipValue", "clipNorm"}, false);
    check_pattern(at("optimizer.l2.tensors"), member(member(optimizer, "l2"), "tensors"),
                  problems_);
  }

  void check_schedule() {
    const Json& schedule = member(training_, "learningRateSchedule");
    check_piecewise(member(schedule, "piecewise"), "learningRateSchedule.piecewise");
    check_one_of("learningRateSchedule", schedule, {"piecewise", "exponential", "cosine"}, false);
  }

  void check_piecewise(const Json& piecewise, const std::string& relative) {
    const Json& boundaries = member(piecewise, "boundaries");
    const Json& values = member(piecewise, "values");
    if (!boundaries.is_array() || !values.is_array()) return;
    if (values.size() != boundaries.size() + 1 && is_sound(relative + ".boundaries") &&
        is_sound(relative + ".values")) {
      report(relative + ".values",
             std::to_string(boundaries.size() + 1) + " values, one more than boundaries",
             std::to_string(values.size()));
    }
    check_rising(relative + ".boundaries", boundaries, "a step after ");
  }

  // Checks that each number of a list is larger than the one before it.
  void check_rising(const std::string& relative, const Json& list, const std::string& expected) {
    if (!list.is_array() || !problems_.is_whole(at(relative))) return;
    for (size_t i = 1; i < list.size(); ++i)
      if (!(list[i] > list[i - 1]))
        report(child_path(relative, i), expected + list[i - 1].dump(), describe(list[i]));
  }

  void check_synchronization() {
    const Json& synchronization = member(training_, "synchronization");
    if (!is_sound("synchronization.policy")) return;
    const std::string policy = string_or(synchronization, "policy", "sync");
    if (given(synchronization, "maxStaleness") && policy != "boundedStaleness") {
      report("synchronization.maxStaleness", "no such field for the policy " + policy,
             describe(member(synchronization, "maxStaleness")));
    }
    if (integer_or(synchronization, "backupWorkers", 0) > 0 && policy != "sync") {
      report("synchronization.backupWorkers", "0 for the policy " + policy,
             describe(member(synchronization, "backupWorkers")));
    }
  }

  void check_shard() {
    const std::string relative = "data.train.shard";
    const Json& train = member(member(training_, "data"), "train");
    if (string_or(train, "shard", "record") != "file" || !is_sound(relative)) return;
    const std::string policy = string_or(member(training_, "synchronization"), "policy", "sync");
    const Json& table = member(train, "table");
    const bool has_files = given(train, "idx") || given(train, "tfRecord") ||
                           (table.is_object() && !bool_or(table, "mixed", false) &&
                            !given(table, "orderBy") && !given(table, "groupBy"));
    if (is_sound("data.train.idx") && !has_files) {
      report(relative,
             "record, for only idx, tfRecord and a table in the order of its files have files",
             describe("file"));
    } else if (is_sound("synchronization.policy") && policy != "sync") {
      report(relative, "record for the policy " + policy, describe("file"));
    }
  }

  void check_evaluation() {
    const Json& checkpoint = member(training_, "checkpoint");
    require_validation(training_, "evaluation", "evaluation");
    require_validation(training_, "earlyStopping", "earlyStopping");
    require_validation(checkpoint, "bestOnly", "checkpoint.bestOnly");
    check_stop_when();
    check_metric(member(training_, "earlyStopping"), "earlyStopping.metric");
    check_metric(member(checkpoint, "bestOnly"), "checkpoint.bestOnly.metric");
  }

  // Reports that the field `name` of `parent`, at `relative`, has no data to evaluate with.
  void require_validation(const Json& parent, const char* name, const std::string& relative) {
    if (!given(parent, name) || given(member(training_, "data"), "validation")) return;
    if (is_sound("data.validation"))
      report(relative, std::string("data.validation beside ") + name, "none");
  }

  void check_stop_when() {
    const Json& stop = member(training_, "stopWhen");
    if (!stop.is_object()) return;
    check_one_of("stopWhen", stop, {"atLeast", "atMost"}, true);
    if (!is_sound("stopWhen.metric") || string_or(stop, "metric", "") == kTrainLoss) return;
    require_validation(training_, "stopWhen", "stopWhen");
    if (check_metric(stop, "stopWhen.metric", {kTrainLoss})) check_reachable(stop);
  }

  // Metrics for which higher is better are shares: 95 was probably meant as 0.95.
  void check_reachable(const Json& stop) {
    const std::string name = string_or(stop, "metric", "");
    const auto metric = metric_of(to_loss(member(training_, "model")), name);
    const Json& least = member(stop, "atLeast");
    if (metric.better == compute::Better::lower || !is_sound("stopWhen.atLeast") ||
        !least.is_number() || least.get<double>() <= 1)
      return;
    report("stopWhen.atLeast", "at most 1, which " + name + " can reach", describe(least));
  }

  // Returns whether the field names a metric of the model's loss. The names in `more` are allowed
  // too, and are checked first.
  bool check_metric(const Json& value, const std::string& relative,
                    const std::vector<std::string>& more = {}) {
    const auto* loss = this->loss();
    if (!loss || !value.is_object() || !is_sound(relative)) return false;
    auto names = metric_names(to_loss(member(training_, "model")));
    const std::string name = string_or(value, "metric", kDefaultMetric);
    const Json& table = member(member(member(training_, "data"), "validation"), "table");
    const bool is_known = std::ranges::find(names, name) != names.end();
    if (is_known && (!is_of_ranking(name) || given(table, "ranking"))) return true;
    if (is_known) {
      report(relative, "data.validation.table.ranking beside this metric", "none");
      return false;
    }
    if (!given(table, "ranking")) std::erase_if(names, is_of_ranking);
    names.insert(names.begin(), more.begin(), more.end());
    report(relative, (names.size() > 1 ? "one of " : "") + join(names) + for_loss(*loss),
           describe(member(value, "metric")));
    return false;
  }

  // Whether the metric is one of those that only data with a ranking have.
  static bool is_of_ranking(const std::string& name) {
    return std::ranges::any_of(compute::ranking_measures().metrics, [&](const auto& metric) {
      return metric_field("validation", metric.name) == name;
    });
  }

  static std::string for_loss(const compute::LossDescription& loss) {
    return ", for the model's loss is " + loss.name;
  }

  const Document& document_;
  const std::string& path_;
  const Json& training_;
  Problems& problems_;
};

// Whether the value is a whole manifest, where only its `training` block was expected.
bool is_whole_job(const Json& value) {
  return string_or(value, "kind", "") == "TrainingJob" ||
         string_or(value, "apiVersion", "").starts_with("muster.dev/");
}

}  // namespace

void check_training(const Document& document, const std::string& path, Problems& problems,
                    const LookUp& look_up) {
  const Json* training = document.find(path);
  if (training == nullptr || !training->is_object()) return;
  Checker checker(document, path, *training, problems);
  checker.run();
  check_fit(document, path, problems, look_up);
  checker.check_length();
}

std::vector<Problem> validate_training(Document& document, const LookUp& look_up) {
  Problems problems(document);
  if (is_whole_job(document.value())) {
    problems.report("", "a training block", "a whole TrainingJob",
                    "give what stands below its spec.training as a file of its own, or use muster "
                    "run " +
                        document.source());
    return problems.sorted();
  }
  problems.add(apply_schema(training_schema(), document));
  check_training(document, "", problems, look_up);
  return problems.sorted();
}

Document load_training(const std::filesystem::path& path) {
  Document document = [&] {
    try {
      return Document::load(path);
    } catch (const Invalid& error) {
      throw Invalid(error.what(), kBadConfig);
    }
  }();
  require_no_problems(validate_training(document), kBadConfig);
  return document;
}

}  // namespace muster::spec
