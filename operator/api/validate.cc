#include "common/exit_code.h"
#include "common/json.h"
#include "operator/api/rules.h"
#include "operator/api/training_job.h"
#include "trainer/spec/training_spec.h"

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
      {"spec.strategy", "collective", "parameterServer"},
      {"spec.replicaSpecs.ps.replication", 2, "1"},
      {"spec.elastic", nullptr, "nothing, a fixed number of workers"},
  };
  return table;
}

void append(std::vector<Problem>& problems, std::vector<Problem> more) {
  for (Problem& problem : more) problems.push_back(std::move(problem));
}

std::vector<Problem> check_size(const Document& document) {
  const Json* training = document.find(kTraining);
  if (training == nullptr) return {};
  const size_t size = training->dump().size();
  if (size <= kMaxTrainingBytes) return {};
  return {
      make_problem(document, kTraining, "at most 64 KiB as JSON", std::to_string(size) + " bytes")};
}

}  // namespace

std::vector<Problem> check_available(const Document& document) {
  const Json* training = document.find(kTraining);
  if (training == nullptr || training->is_null()) return {};
  std::vector<Problem> problems;
  for (const NotYet& entry : not_yet()) {
    const Json* value = document.find(entry.path);
    if (value == nullptr || value->is_null()) continue;
    if (!entry.refused.is_null() && *value != entry.refused) continue;
    problems.push_back(make_problem(document, entry.path, entry.instead,
                                    describe(*value) + ", which is not available in this build"));
  }
  return problems;
}

std::vector<Problem> validate(Document& document) {
  std::vector<Problem> problems = apply_schema(training_job_schema(), document);
  append(problems, check_rules(document));
  append(problems, check_templates(document));
  append(problems, spec::check_training(document, kTraining));
  append(problems, check_available(document));
  append(problems, check_size(document));
  return problems;
}

TrainingJob load_training_job(Document& document) {
  require_no_problems(validate(document), kBadInput);
  return to_training_job(document.value());
}

}  // namespace muster::api
