#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/documents/document.h"
#include "operator/api/training_job.h"
#include "operator/local/processes/ports.h"
#include "operator/plan/values.h"

namespace muster::local {

// Returns the name of a replica's files and log: "chief-0", or "master-0" if the job says so.
std::string replica_name(const api::TrainingJob& job, api::Role role, int index);

// The paths in a job's directory (docs/architecture.md).
class JobDirectory {
 public:
  explicit JobDirectory(std::filesystem::path root);

  const std::filesystem::path& root() const { return root_; }  // absolute
  std::filesystem::path manifest() const { return root_ / "job.yaml"; }
  std::filesystem::path state() const { return root_ / "job.json"; }
  std::filesystem::path scale() const { return root_ / "scale.json"; }  // scale_request.h
  // checkpoint_request.h
  std::filesystem::path checkpoint_request() const { return root_ / "checkpoint-request"; }
  std::filesystem::path lock() const { return root_ / "lock"; }
  std::filesystem::path summary() const { return root_ / "summary.json"; }
  std::filesystem::path result() const { return root_ / "result.json"; }
  std::filesystem::path evaluations() const { return root_ / "evaluations"; }
  std::filesystem::path replicas() const { return root_ / "replicas"; }
  std::filesystem::path logs() const { return root_ / "logs"; }
  std::filesystem::path keys(const std::string& name) const { return root_ / "tls" / name; }
  std::filesystem::path events() const { return logs() / "muster.log"; }
  std::filesystem::path replica(const std::string& name) const { return replicas() / name; }
  std::filesystem::path training(const std::string& name) const {
    return replica(name) / "training.yaml";
  }
  std::filesystem::path pid_file(const std::string& name) const { return replica(name) / "pid"; }
  std::filesystem::path log(const std::string& name) const { return logs() / (name + ".log"); }

 private:
  std::filesystem::path root_;
};

// The content of job.json, which is kept between runs.
struct JobState {
  std::string name;
  std::string uid;
  int64_t generation = 1;
  Addresses addresses;
  std::string working_directory;  // the folder at which relative paths of `training` begin
  std::string resume;             // the command that continues the last run
  double wall_seconds = 0;        // time of all runs so far
  std::vector<plan::ObservedReplica> replicas;  // the replicas as last seen
  Json status;                 // written by api::to_json(); null before the first status
  std::optional<int> threads;  // threads of each computing replica, once the job has run on hosts
  // The number that the job was scaled to; nothing: the manifest's number.
  std::optional<int> workers;
};

// Returns nothing if there is no job.json yet. Throws Invalid, naming file and field, if it is
// damaged.
std::optional<JobState> load_state(const JobDirectory& directory);
// Throws WriteError.
void save_state(const JobDirectory& directory, const JobState& state);

}  // namespace muster::local
