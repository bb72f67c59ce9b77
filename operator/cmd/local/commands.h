#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "operator/cmd/job/checkpoint_request.h"
#include "operator/cmd/job/job_source.h"

namespace muster::cmd {

// The commands of `muster`. Each returns the exit code of the process, and throws Invalid or
// Unavailable, which main() shows to the user. Results go to stdout; `json` makes them JSON.

int run_job(const RunOptions& options);

// `muster host`: `muster run --hosts` starts it on each host, and on this machine once for each
// replica.
int serve_host(const std::string& action, const std::filesystem::path& file);

int validate_manifests(const std::vector<std::filesystem::path>& files,
                       const std::vector<std::string>& sets, bool json);

// Prints what `muster run` would start: each replica's command, environment and training.yaml.
int render_job(const RunOptions& options);

// `output` is text, json or yaml.
int show_status(const std::filesystem::path& directory, const std::string& output);

struct LogOptions {
  std::filesystem::path directory;
  std::vector<std::string> replicas;  // "worker", "worker-1"; empty: all
  int tail = -1;                      // lines of each; -1: all
  bool follow = false;
  bool json = false;  // a JSON object a line (log_printer.h)
};
int show_logs(const LogOptions& options);

// Makes the `muster run` of the directory use `workers` workers, and waits until the run has read
// the request.
int scale_local_job(const std::filesystem::path& directory, int workers);

// Asks the `muster run` of the directory for a checkpoint and, if options.wait, waits until the
// checkpoint is published.
int checkpoint_local_job(const std::filesystem::path& directory, const CheckpointOptions& options);

// Sends SIGTERM to the `muster run` of the directory, and waits until it exits. With `now` the run
// stops at once, without a checkpoint.
int stop_job(const std::filesystem::path& directory, bool now);

// Turns a TFJob (one file that ends in .yaml, .yml or .json), or the pipeline of the TF Object
// Detection API in `files`, into a TrainingJob. Writes the TrainingJob as YAML to `output`, or
// prints it if `output` is empty. Names the settings that are not carried over, in the YAML and on
// stderr; also names values that `muster validate` refuses, and then returns kBadInput.
int convert_files(const std::vector<std::filesystem::path>& files,
                  const std::filesystem::path& output);

// Prints the CustomResourceDefinition of TrainingJob, as YAML or JSON, with this version of Muster.
int print_definition(const std::string& version, bool json);

// Replaces this process by `muster-trainer <command> <arguments>`. If the argument of --checkpoint
// is in a job's directory (or is one), relative paths of data are read as the job read them.
int exec_trainer(const std::string& command, std::vector<std::string> arguments);

}  // namespace muster::cmd
