#include <algorithm>

#include "common/json.h"
#include "trainer/compute/models/catalogue.h"
#include "trainer/spec/layers.h"
#include "trainer/spec/training_spec.h"

namespace muster::spec {

namespace {

constexpr int64_t kMaxSampleFeatures = int64_t{1} << 24;

// What the API has and this build cannot do yet: refused by name, never ignored.
struct NotYet {
  const char* path;     // below `training`
  const char* value;    // the string that is refused; nullptr: any number above 0
  const char* instead;  // what works
};
constexpr NotYet kNotYet[] = {
    {"precision", "bfloat16", "float32"},
    {"synchronization.policy", "boundedStaleness", "sync or async"},
    {"synchronization.backupWorkers", nullptr, "0"},
};

// Fields of `optimizer` that only some rules have.
struct OptimizerField {
  const char* field;
  std::vector<std::string> rules;
};
const std::vector<OptimizerField>& optimizer_fields() {
  static const std::vector<OptimizerField> fields = {
      {"momentum", {"sgd", "momentum"}}, {"nesterov", {"sgd", "momentum"}},
      {"beta1", {"adam", "adamw"}},      {"beta2", {"adam", "adamw"}},
      {"epsilon", {"adam", "adamw"}},    {"weightDecay", {"adamw"}},
  };
  return fields;
}

bool given(const Json& value, const char* key) {
  return !member(value, key).is_null();
}

class Checker {
 public:
  Checker(const Document& document, const std::string& path, const Json& training)
      : document_(document), path_(path), training_(training) {}

  std::vector<Problem> run() {
    check_one_of("", training_, {"epochs", "steps"}, true);
    check_model();
    for (const char* part : {"train", "validation", "test"}) check_source(part);
    check_optimizer();
    check_schedule();
    check_synchronization();
    check_not_yet();
    return std::move(problems_);
  }

 private:
  std::string at(const std::string& relative) const {
    return path_.empty() || relative.empty() ? path_ + relative : path_ + "." + relative;
  }

  void report(const std::string& relative, std::string expected, std::string found,
              std::string hint = "") {
    problems_.push_back(make_problem(document_, at(relative), std::move(expected), std::move(found),
                                     std::move(hint)));
  }

  // Exactly one (`required`), or at most one, of the fields.
  void check_one_of(const std::string& relative, const Json& value,
                    const std::vector<std::string>& fields, bool required) {
    std::vector<std::string> found;
    for (const std::string& field : fields) {
      if (given(value, field.c_str())) found.push_back(field);
    }
    if (found.size() == 1 || (found.empty() && !required)) return;
    report(relative, (required ? "exactly one of " : "at most one of ") + join(fields),
           found.empty() ? "none of them" : join(found));
  }

  void check_model() {
    const Json& model = member(training_, "model");
    if (!model.is_object()) return;
    check_one_of("model", model, {"name", "layers"}, true);
    const bool by_name = given(model, "name");
    if (by_name && given(model, "loss")) {
      report("model.loss", "no loss beside a model's name, which has its own",
             describe(member(model, "loss")));
    }
    const std::vector<Problem> problems = check_layers(document_, at("model.layers"));
    problems_.insert(problems_.end(), problems.begin(), problems.end());
  }

  std::string loss() const {
    const Json& model = member(training_, "model");
    if (const auto known = compute::find_model(string_or(model, "name", ""))) {
      return known->loss == compute::Loss::mean_squared_error ? "meanSquaredError"
                                                              : "softmaxCrossEntropy";
    }
    return string_or(model, "loss", "softmaxCrossEntropy");
  }

  void check_source(const std::string& part) {
    const std::string relative = "data." + part;
    const Json& source = member(member(training_, "data"), part);
    if (!source.is_object()) return;
    check_one_of(relative, source, {"idx", "syntheticLinear", "syntheticClasses"}, true);
    const bool has_targets = given(source, "syntheticLinear");
    if (has_targets != (loss() == "meanSquaredError")) {
      report(relative,
             has_targets ? "classes, for the model's loss is softmaxCrossEntropy"
                         : "numbers as targets, for the model's loss is meanSquaredError",
             has_targets ? "syntheticLinear, which has numbers" : "a source with classes");
    }
    int64_t features = 1;
    for (const Json& axis : member(member(source, "syntheticClasses"), "shape")) {
      if (!axis.is_number_integer() || features > kMaxSampleFeatures) break;
      const int64_t size = axis.get<int64_t>();
      features = size < 1 || size > kMaxSampleFeatures ? kMaxSampleFeatures + 1 : features * size;
    }
    if (features > kMaxSampleFeatures) {
      report(relative + ".syntheticClasses.shape",
             "at most " + std::to_string(kMaxSampleFeatures) + " features a sample", "more");
    }
  }

  void check_optimizer() {
    const Json& optimizer = member(training_, "optimizer");
    const std::string rule = string_or(optimizer, "name", "adam");
    for (const OptimizerField& entry : optimizer_fields()) {
      if (!given(optimizer, entry.field)) continue;
      const auto& rules = entry.rules;
      if (std::find(rules.begin(), rules.end(), rule) != rules.end()) continue;
      report(std::string("optimizer.") + entry.field,
             "no such field for " + rule + " (it belongs to " + join(rules) + ")",
             describe(member(optimizer, entry.field)));
    }
    const double momentum = number_or(optimizer, "momentum", rule == "momentum" ? 0.9 : 0.0);
    if (bool_or(optimizer, "nesterov", false) && momentum == 0 &&
        (rule == "sgd" || rule == "momentum")) {
      report("optimizer.nesterov", "a momentum above 0 beside nesterov", "none");
    }
  }

  void check_schedule() {
    const Json& schedule = member(training_, "learningRateSchedule");
    check_one_of("learningRateSchedule", schedule, {"piecewise", "exponential", "cosine"}, false);
    const Json& piecewise = member(schedule, "piecewise");
    const Json& boundaries = member(piecewise, "boundaries");
    const Json& values = member(piecewise, "values");
    const std::string relative = "learningRateSchedule.piecewise";
    if (!boundaries.is_array() || !values.is_array()) return;
    if (values.size() != boundaries.size() + 1) {
      report(relative + ".values",
             std::to_string(boundaries.size() + 1) + " values, one more than boundaries",
             std::to_string(values.size()));
    }
    for (size_t i = 1; i < boundaries.size(); ++i) {
      if (boundaries[i] > boundaries[i - 1]) continue;
      report(child_path(relative + ".boundaries", i), "a step after " + boundaries[i - 1].dump(),
             describe(boundaries[i]));
    }
  }

  void check_synchronization() {
    const Json& synchronization = member(training_, "synchronization");
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

  void check_not_yet() {
    for (const NotYet& entry : kNotYet) {
      const Json* value = document_.find(at(entry.path));
      if (value == nullptr) continue;
      const bool refused = entry.value != nullptr ? value->is_string() && *value == entry.value
                                                  : value->is_number_integer() && *value > 0;
      if (refused) {
        report(entry.path, entry.instead,
               describe(*value) + ", which is not available in this build");
      }
    }
  }

  const Document& document_;
  const std::string& path_;
  const Json& training_;
  std::vector<Problem> problems_;
};

}  // namespace

std::vector<Problem> check_training(const Document& document, const std::string& path) {
  const Json* training = document.find(path);
  if (training == nullptr || !training->is_object()) return {};
  return Checker(document, path, *training).run();
}

}  // namespace muster::spec
