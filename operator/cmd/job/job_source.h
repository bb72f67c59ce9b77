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

// Returns the look-up that finds a manifest's data files in the same way as its replicas on this
// machine.
spec::LookUp look_here(const std::filesystem::path& manifest);

// The user's request to run a job.
struct RunOptions {
  std::filesystem::path manifest;
  std::vector<std::string> sets;    // path=value
  std::filesystem::path directory;  // empty: runs/<name of the job>
  bool retry = false;               // continue a job that has failed
  bool go_on = false;           // continue a job that has succeeded, if its manifest has changed
  std::filesystem::path hosts;  // the file of --hosts; empty: on this machine
  bool json = false;            // the summary on stdout, everything else on stderr
};

struct JobSource {
  api::TrainingJob job;
  Document document;  // the manifest with defaults and --set
  local::Setting setting;
  std::vector<std::string> notes;  // a line for each probable mistake
};
// Loads the job. Throws Invalid with every problem of the manifest.
JobSource load_job(const RunOptions& options);

// Sets how many devices each replica has in a job with `devices: auto`: local::devices_of_each(),
// or one in a build without CUDA.
void count_devices(JobSource& source);

// Returns the path in MUSTER_TRAINER, else the muster-trainer in this program's folder, else the
// one on PATH; empty if there is none.
std::filesystem::path find_trainer();
// Returns find_trainer(); throws Invalid if there is none.
std::filesystem::path require_trainer();

bool has_role(const api::TrainingJob& job, api::Role role);
// Returns the role whose first replica leads the training.
api::Role leader_of(const api::TrainingJob& job);
// Returns the folder at which relative paths of a role begin; nothing if the job has no such role,
// or the role does not run muster-trainer on this machine.
std::optional<std::filesystem::path> trainer_folder(const JobSource& source, api::Role role);

// Whether the job will still start replicas that read its data. False for a job that is suspended
// or whose end is decided.
bool starts_replicas(const api::TrainingJob& job);

// Returns a path as a user would repeat it after --directory: relative to the working directory if
// that is shorter and cannot be mistaken for anything else.
std::string shown(const std::filesystem::path& path);

}  // namespace muster::cmd
