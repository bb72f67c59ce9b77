#include "operator/api/validate.h"

#include "common/exit_code.h"
#include "common/json.h"
#include "operator/api/rules.h"

namespace muster::api {

namespace {

constexpr const char* kTraining = "spec.training";
constexpr size_t kMaxTrainingBytes = 64 * 1024;  // it travels as an annotation

// What the API has and the trainer of this build cannot do yet. Without `training` the image is the
// user's and may do what it likes. Those inside `training` are refused by check_training().
struct NotYet {
  const char* path;
  Json refused;  // null: whatever is given
  const char* instead;
};
const std::vector<NotYet>& not_yet() {
  static const std::vector<NotYet> table = {
      {"spec.elastic", nullptr, "nothing, a fixed number of workers"},
  };
  return table;
}

void check_size(const Document& document, Problems& problems) {
  const Json* training = document.find(kTraining);
  const size_t size = training == nullptr ? 0 : training->dump().size();
  if (size <= kMaxTrainingBytes) return;
  problems.report(kTraining, "at most 64 KiB as JSON", std::to_string(size) + " bytes");
}

// A `training` block where a whole manifest was asked for.
bool is_training_alone(const Json& value) {
  return value.is_object() && !value.contains("spec") && !value.contains("kind") &&
         value.contains("model") && value.contains("data");
}

}  // namespace

void check_available(const Document& document, Problems& problems) {
  const Json* training = document.find(kTraining);
  if (training == nullptr || training->is_null()) return;
  for (const NotYet& entry : not_yet()) {
    const Json* value = document.find(entry.path);
    if (value == nullptr || value->is_null()) continue;
    if (!entry.refused.is_null() && *value != entry.refused) continue;
    problems.report(entry.path, entry.instead,
                    describe(*value) + ", which is not available in this build");
  }
}

std::vector<Problem> validate(Document& document) {
  return validate(document, {});
}

std::vector<Problem> validate(Document& document, const spec::LookUp& look_up) {
  Problems problems(document);
  if (is_training_alone(document.value())) {
    problems.report(
        "", "a TrainingJob", "a training block alone",
        "put it below spec.training of a manifest, or use muster-trainer --standalone " +
            document.source());
    return problems.sorted();
  }
  problems.add(apply_schema(training_job_schema(), document));
  check_rules(document, problems);
  check_templates(document, problems);
  spec::check_training(document, kTraining, problems, look_up);
  check_available(document, problems);
  check_size(document, problems);
  return problems.sorted();
}

std::vector<Problem> validate_for_cluster(Document& document) {
  const std::vector<Problem> always = validate(document);
  if (!always.empty()) return always;
  const TrainingJob job = to_training_job(document.value());
  Problems problems(document);
  if (!job.training.is_null() && replicas_of(job) > 1 && job.storage_volume.is_null()) {
    problems.report("spec.storage.volume", "a volume that all replicas mount", "none",
                    "such as {persistentVolumeClaim: {claimName: NAME}} of a ReadWriteMany claim");
  }
  return problems.sorted();
}

TrainingJob load_training_job(Document& document) {
  require_no_problems(validate(document), kBadInput);
  return to_training_job(document.value());
}

}  // namespace muster::api
