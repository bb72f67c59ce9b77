#include "operator/cmd/job/scale.h"

#include <fmt/format.h>

#include "common/error.h"
#include "common/exit_code.h"
#include "operator/api/overview.h"
#include "operator/api/validate.h"

namespace muster::cmd {

int workers_of(const api::TrainingJob& job) {
  return job.replicas.at(api::Role::worker).replicas;
}

std::string workers_text(int workers) {
  return std::to_string(workers) + (workers == 1 ? " worker" : " workers");
}

std::string scaled_text(const api::TrainingJob& job, int workers) {
  const bool changes = workers_of(job) != workers;
  const bool restarts = changes && !api::workers_may_change(job) && !job.suspend;
  return "scaled to " + workers_text(workers) +
         (restarts ? "; all replicas restart, to have the same TF_CONFIG" : "");
}

void require_scalable(const api::TrainingJob& job, int workers) {
  if (!job.replicas.contains(api::Role::worker)) {
    throw Invalid("job " + job.name + ": expected spec.replicaSpecs.worker, found none");
  }
  if (!job.training.is_null() && !job.elastic && !job.status.is_true("Suspended")) {
    throw Invalid("job " + job.name +
                  ": expected spec.elastic, for without it the number of workers of a job with "
                  "spec.training changes only while the job is suspended; found none");
  }
  const bool decided =
      job.status.is_true("SuccessCriteriaMet") || job.status.is_true("FailureTarget");
  if (decided) {
    throw Invalid("job " + job.name + ": expected one that trains, found one that is " +
                  api::state_word(job.status));
  }
  if (!job.elastic) return;
  const api::Elastic& elastic = *job.elastic;
  if (workers < elastic.min_replicas || workers > elastic.max_replicas) {
    throw Invalid(fmt::format(
        "--replicas: expected from {} to {}, minReplicas and maxReplicas of job {}'s spec.elastic; "
        "found {}",
        elastic.min_replicas, elastic.max_replicas, job.name, workers));
  }
}

void require_scalable_here(const local::JobDirectory& directory, const api::TrainingJob& job,
                           int workers) {
  require_scalable(job, workers);
  Document document = Document::load(directory.manifest());
  if (Json* const worker = document.find("spec.replicaSpecs.worker")) {
    (*worker)["replicas"] = workers;
  }
  require_no_problems(api::validate(document), kBadInput);
}

}  // namespace muster::cmd
