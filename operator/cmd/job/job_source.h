#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/document.h"
#include "operator/api/training_job.h"
#include "operator/local/replica_launch.h"
#include "trainer/spec/check.h"

namespace muster::cmd {

// Looks at the data files of a manifest as its replicas would find them on this machine.
spec::LookUp look_here(const std::filesystem::path& manifest);

// The manifest with --set applied, not yet validated. Throws Invalid.
Document load_manifest(const std::filesystem::path& manifest, const std::vector<std::string>& sets);

// The user asks to run this.
struct RunOptions {
  std::filesystem::path manifest;
  std::vector<std::string> sets;    // path=value
  std::filesystem::path directory;  // empty: runs/<name of the job>
  bool retry = false;               // go on although the job has failed
  bool json = false;                // the summary on stdout, everything else on stderr
};

struct JobSource {
  api::TrainingJob job;
  Document document;  // the manifest with defaults and --set
  local::Setting setting;
  std::vector<std::string> notes;  // what is probably not meant, a line each
};
// Throws Invalid with every problem of the manifest.
JobSource load_job(const RunOptions& options);

// MUSTER_TRAINER, else muster-trainer beside this program, else on PATH; empty if there is none.
std::filesystem::path find_trainer();
// Throws Invalid where there is none.
std::filesystem::path require_trainer();

bool has_role(const api::TrainingJob& job, api::Role role);
// The role whose first replica leads the training.
api::Role leader_of(const api::TrainingJob& job);
// The folder that relative paths of a role start at; nothing where the job has no such role, or it
// does not run muster-trainer here.
std::optional<std::filesystem::path> trainer_folder(const JobSource& source, api::Role role);

// False of a job that is suspended or whose end is decided: nothing is started any more that would
// read its data.
bool starts_replicas(const api::TrainingJob& job);

// "--directory" as a user would repeat it: relative to here where that is shorter and cannot be
// taken for anything else.
std::string shown(const std::filesystem::path& path);

}  // namespace muster::cmd
