#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/training_job.h"
#include "operator/local/command.h"
#include "operator/local/hosts/hosts.h"
#include "operator/local/job_directory.h"
#include "operator/local/processes/process.h"

namespace muster::local {

// The settings that all replicas of a `muster run` share.
struct Setting {
  JobDirectory directory;
  std::filesystem::path working_directory;  // the manifest's folder; absolute
  std::filesystem::path trainer;            // path of muster-trainer; empty: the job needs none
  std::vector<std::string> environment;     // variables that the replicas inherit, as NAME=value
  int cpus = 1;                             // processors of this machine
  int gpus = 0;
  std::shared_ptr<Hosts> hosts;  // the hosts of the replicas; null: this machine
  std::optional<int> threads;    // threads of each computing replica, on several hosts
};

// Returns the names that need a port. Every replica, including those that an elastic job may get
// later, needs a port for its peers (except evaluators, which have no peers) and a port for HTTP.
std::vector<std::string> port_names(const api::TrainingJob& job);

// Returns the number of threads that each replica of a job should compute with, so that chief and
// workers share `cpus`; 0 for a job of one replica, which may use the whole machine. An elastic job
// is counted with its largest number of workers, so that the number of threads, on which results
// depend, does not change when the job is scaled.
int threads_of_each(const api::TrainingJob& job, int cpus);

// Returns how many devices each replica of a job with `devices: auto` has on this machine, or on
// the hosts: chief and workers share the GPUs equally, or have the GPUs that CUDA_VISIBLE_DEVICES
// names in the environment or in a template. The replica with the fewest GPUs decides.
int devices_of_each(const api::TrainingJob& job, const Setting& setting);

// Returns CUDA_VISIBLE_DEVICES for a replica of a job with `training` on a machine with `gpus`
// GPUs: each computing replica gets its own GPUs, as many as `devices`; if there are too few GPUs,
// the numbers wrap around and replicas share GPUs. A ps gets none. Returns nothing if there is at
// most one GPU, or if the job computes on the CPU.
std::optional<std::string> visible_gpus(const api::TrainingJob& job, api::Role role, int index,
                                        int gpus);

// Returns all variables that Muster sets for one replica.
Variables replica_variables(const api::TrainingJob& job, api::Role role, int index, int attempt,
                            const Setting& setting, const Addresses& addresses);

// How to start one replica. Creating this object writes nothing.
struct ReplicaLaunch {
  Launch launch;
  std::chrono::seconds grace;
  bool runs_trainer;  // it runs muster-trainer, which answers /healthz and /progress
  std::vector<std::string> left_out;  // variables without a value on this machine
};
ReplicaLaunch replica_launch(const api::TrainingJob& job, api::Role role, int index, int attempt,
                             const Setting& setting, const Addresses& addresses);

// Returns the replicas of the job that need a place, as port_names() counts them.
std::vector<Hosts::Replica> replicas_to_place(const api::TrainingJob& job);
// Returns the number of replicas that the job should have now.
int wanted_replicas(const api::TrainingJob& job);

// Throws Invalid, naming field and line of `document`, for a role without a command, or if it runs
// `here` and its command or working directory does not exist on this machine. Returns a sentence
// for each part of the job that has no effect outside Kubernetes.
std::vector<std::string> check_runs_here(const api::TrainingJob& job, const Document& document,
                                         const Setting& setting, bool here);

}  // namespace muster::local
