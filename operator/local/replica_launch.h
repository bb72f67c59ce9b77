#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "operator/api/training_job.h"
#include "operator/local/command.h"
#include "operator/local/job_directory.h"
#include "operator/local/process.h"

namespace muster::local {

// What every replica of a `muster run` is started with.
struct Setting {
  JobDirectory directory;
  std::filesystem::path working_directory;  // the manifest's folder; absolute
  std::filesystem::path trainer;            // muster-trainer; empty where the job needs none
  std::vector<std::string> environment;     // NAME=value: what the replicas inherit
};

// This process's environment without what Muster sets for each replica, and with what makes logs
// readable: MUSTER_LOG_FORMAT=text and PYTHONUNBUFFERED=1, unless they are set.
std::vector<std::string> inherited_environment();

// "127.0.0.1:<port>" of ports["chief-0"] or ports["chief-0/http"].
std::string local_address(const std::map<std::string, int>& ports, const std::string& name);

// The names that need a port: every replica, those that an elastic job may come to have too, for
// what peers dial (evaluators have no peers), and every one for HTTP.
std::vector<std::string> port_names(const api::TrainingJob& job);

// Threads that each replica of a job should compute with, so that chief and workers share `cpus`; 0
// for a job of one replica, which may have the machine to itself. Of an elastic job as many workers
// as it may have are counted: the number of threads, on which results depend, stays when it is
// scaled.
int threads_of_each(const api::TrainingJob& job, int cpus);

// The variables of one replica that Muster sets, in full.
Variables replica_variables(const api::TrainingJob& job, api::Role role, int index, int attempt,
                            const JobDirectory& directory, const std::map<std::string, int>& ports);

// How to start one replica. Writes nothing.
struct ReplicaLaunch {
  Launch launch;
  std::chrono::seconds grace;
  bool runs_trainer;                  // muster-trainer, which answers /healthz and /progress
  std::vector<std::string> left_out;  // variables without a value here
};
ReplicaLaunch replica_launch(const api::TrainingJob& job, api::Role role, int index, int attempt,
                             const Setting& setting, const std::map<std::string, int>& ports);

// Throws Invalid, naming field and line of `document`, for a role whose command or working
// directory does not exist on this machine. Returns what of the job has no meaning here, a sentence
// each.
std::vector<std::string> check_runs_here(const api::TrainingJob& job, const Document& document,
                                         const Setting& setting);

}  // namespace muster::local
