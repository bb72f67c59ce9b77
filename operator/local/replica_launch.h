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
  std::filesystem::path trainer;            // muster-trainer; empty where the job needs none
  std::vector<std::string> environment;     // NAME=value: what the replicas inherit
  int cpus = 1;                             // of this machine
  int gpus = 0;
  std::shared_ptr<Hosts> hosts;  // those on which replicas run; null: on this machine
  std::optional<int> threads;    // of each replica that computes, on several hosts
};

// Returns the names that need a port: every replica, including those that an elastic job may get
// later, for its peers (evaluators have no peers), and every one for HTTP.
std::vector<std::string> port_names(const api::TrainingJob& job);

// Returns the number of threads that each replica of a job should compute with, so that chief and
// workers share `cpus`; 0 for a job of one replica, which may use the whole machine. For an elastic
// job the largest number of workers counts: the number of threads, on which results depend, stays
// the same when the job is scaled.
int threads_of_each(const api::TrainingJob& job, int cpus);

// Returns how many devices each replica of a job with `devices: auto` has on this machine, or on
// the hosts: the GPUs are shared out equally among chief and workers, or are those that
// CUDA_VISIBLE_DEVICES names in the environment or in a template. The replica with the fewest
// counts.
int devices_of_each(const api::TrainingJob& job, const Setting& setting);

// Returns CUDA_VISIBLE_DEVICES for a replica of a job with `training` on a machine with `gpus`
// GPUs: each one that computes gets as many of its own as the job has devices, counted round where
// there are too few; a ps gets none. Returns nothing where there is at most one GPU, or where the
// job computes on the CPU.
std::optional<std::string> visible_gpus(const api::TrainingJob& job, api::Role role, int index,
                                        int gpus);

// Returns all variables that Muster sets for one replica.
Variables replica_variables(const api::TrainingJob& job, api::Role role, int index, int attempt,
                            const Setting& setting, const Addresses& addresses);

// The way to start one replica. Making it writes nothing.
struct ReplicaLaunch {
  Launch launch;
  std::chrono::seconds grace;
  bool runs_trainer;                  // muster-trainer, which answers /healthz and /progress
  std::vector<std::string> left_out;  // variables without a value here
};
ReplicaLaunch replica_launch(const api::TrainingJob& job, api::Role role, int index, int attempt,
                             const Setting& setting, const Addresses& addresses);

// Returns the replicas of the job that need a place, as port_names() counts them.
std::vector<Hosts::Replica> replicas_to_place(const api::TrainingJob& job);
// Returns how many replicas the job has now, or is to have.
int wanted_replicas(const api::TrainingJob& job);

// Throws Invalid, naming field and line of `document`, for a role without a command, or if it runs
// `here` and its command or working directory does not exist on this machine. Returns a sentence
// for each part of the job that has no meaning outside Kubernetes.
std::vector<std::string> check_runs_here(const api::TrainingJob& job, const Document& document,
                                         const Setting& setting, bool here);

}  // namespace muster::local
