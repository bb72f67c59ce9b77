#pragma once

#include <filesystem>

#include "operator/api/training_job.h"
#include "operator/local/job_directory.h"

namespace muster::cmd {

// A job as it is stored in its directory; the job may be running or not.
struct StoredJob {
  local::JobDirectory directory;
  local::JobState state;
  api::TrainingJob job;  // with its status
};
// Loads the job. Throws Invalid if `directory` holds no job.
StoredJob load_stored_job(const std::filesystem::path& directory);

}  // namespace muster::cmd
