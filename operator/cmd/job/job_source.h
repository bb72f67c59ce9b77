#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/documents/document.h"
#include "operator/api/training_job.h"
#include "operator/local/replica_launch.h"
#include "trainer/spec/check.h"

namespace muster::cmd {

// Returns the look-up that finds the data files of a manifest as its replicas on this machine
// would.
spec::LookUp look_here(const std::filesystem::path& manifest);

// The user's request to run a job.
struct RunOptions {
  std::filesystem::path manifest;
  std::vector<std::string> sets;    // path=value
  std::filesystem::path directory;  // empty: runs/<name of the job>
  bool retry = false;               // go on although the job has failed
  bool go_on = false;               // train on although the job has succeeded, if it has changed
  std::filesystem::path hosts;      // the file of --hosts; empty: on this machine
  bool json = false;                // the summary on stdout, everything else on stderr
};

struct JobSource {
  api::TrainingJob job;
  Document document;  // the manifest with defaults and --set
  local::Setting setting;
  std::vector<std::string> notes;  // what is probably not meant, a line each
};
// Loads the job. Throws Invalid with every problem of the manifest.
JobSource load_job(const RunOptions& options);

// Sets how many devices each replica has in a job with `devices: auto`: local::devices_of_each(),
// or one in a build without CUDA.
void count_devices(JobSource& source);

// Returns MUSTER_TRAINER, else muster-trainer beside this program, else on PATH; empty if there is
// none.
std::filesystem::path find_trainer();
// Returns find_trainer(); throws Invalid if there is none.
std::filesystem::path require_trainer();

bool has_role(const api::TrainingJob& job, api::Role role);
// Returns the role of which the first replica leads the training.
api::Role leader_of(const api::TrainingJob& job);
// Returns the folder from which relative paths of a role count; nothing if the job has no such
// role, or the role does not run muster-trainer here.
std::optional<std::filesystem::path> trainer_folder(const JobSource& source, api::Role role);

// False for a job that is suspended or has its end decided: then no more replicas are started that
// would read its data.
bool starts_replicas(const api::TrainingJob& job);

// Returns a path as a user would repeat it after --directory: relative to the working directory if
// that is shorter and cannot be mistaken for anything else.
std::string shown(const std::filesystem::path& path);

}  // namespace muster::cmd
