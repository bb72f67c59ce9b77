#include "operator/cmd/job/stored_job.h"

#include "common/error.h"
#include "operator/api/status.h"
#include "operator/api/validate.h"
#include "operator/cmd/job/job_source.h"

namespace muster::cmd {

StoredJob load_stored_job(const std::filesystem::path& path) {
  const local::JobDirectory directory(path);
  std::optional<local::JobState> state = local::load_state(directory);
  if (!state) {
    throw Invalid(shown(directory.root()) +
                  ": expected a job's directory, with a job.json; found none");
  }
  Document document = Document::load(directory.manifest());
  api::TrainingJob job = api::load_training_job(document);
  job.uid = state->uid;
  job.generation = state->generation;
  job.status = api::to_job_status(state->status);
  if (state->workers) job.replicas[api::Role::worker].replicas = *state->workers;
  return {directory, std::move(*state), std::move(job)};
}

}  // namespace muster::cmd
