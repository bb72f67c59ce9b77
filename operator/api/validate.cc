#include "operator/api/validate.h"

#include "common/documents/json.h"
#include "common/exit_code.h"
#include "operator/api/rules.h"
#include "operator/api/schema.h"
#include "operator/api/templates.h"

namespace muster::api {

namespace {

constexpr const char* kTraining = "spec.training";
constexpr size_t kMaxTrainingBytes = 64 * 1024;  // `training` is passed to pods as an annotation

void check_size(const Document& document, Problems& problems) {
  const Json* training = document.find(kTraining);
  const size_t size = training == nullptr ? 0 : training->dump().size();
  if (size <= kMaxTrainingBytes) return;
  problems.report(kTraining, "at most 64 KiB as JSON", std::to_string(size) + " bytes");
}

// Whether the document is only a `training` block, where a whole manifest is expected.
bool is_training_alone(const Json& value) {
  return value.is_object() && !value.contains("spec") && !value.contains("kind") &&
         value.contains("model") && value.contains("data");
}

}  // namespace

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
  check_size(document, problems);
  return problems.sorted();
}

std::vector<Problem> validate_for_cluster(Document& document) {
  const std::vector<Problem> always = validate(document);
  if (!always.empty()) return always;
  const TrainingJob job = to_training_job(document.value());
  Problems problems(document);
  int most = 0;
  for (const Role role : kRoles) most += most_replicas(job, role);
  // Earlier versions accepted a volume that each pod has for itself: such a job goes on.
  const bool accepted_before =
      given(member(document.value(), "status"), "startTime") && job.storage_volume.is_object();
  if (most > 1 && loses_files(job) && !accepted_before) {
    problems.report("spec.storage.volume", "a volume that all replicas share",
                    job.storage_volume.is_null() ? "none" : "one that each pod has for itself",
                    "such as {persistentVolumeClaim: {claimName: NAME}} of a ReadWriteMany claim");
  }
  return problems.sorted();
}

TrainingJob load_training_job(Document& document) {
  require_no_problems(validate(document), kBadInput);
  return to_training_job(document.value());
}

}  // namespace muster::api
