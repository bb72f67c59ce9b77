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

// `muster host`: what `muster run --hosts` starts on each host, and here for each replica.
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

// Makes the `muster run` of the directory use so many workers, and waits until it has read the
// request.
int scale_local_job(const std::filesystem::path& directory, int workers);

// Asks the `muster run` of the directory for a checkpoint and, if that is wanted, waits until it is
// published.
int checkpoint_local_job(const std::filesystem::path& directory, const CheckpointOptions& options);

// Sends SIGTERM to the `muster run` of the directory, and waits until it exits. With `now` it stops
// at once, without a checkpoint.
int stop_job(const std::filesystem::path& directory, bool now);

// Turns a TFJob (one file that ends in .yaml, .yml or .json), or the pipeline of the TF Object
// Detection API in `files`, into a TrainingJob, and writes it as YAML to `output`, or prints it if
// that is empty. What it does not carry over is named there, and on stderr, as are values that make
// the job one that `muster validate` refuses; the exit code is kBadInput then.
int convert_files(const std::vector<std::filesystem::path>& files,
                  const std::filesystem::path& output);

// Prints the CustomResourceDefinition of TrainingJob, as YAML or JSON.
int print_definition(bool json);

// Replaces this process by `muster-trainer <command> <arguments>`. If its --checkpoint is a job's
// directory or lies in one, relative paths of the data are read as the job read them.
int exec_trainer(const std::string& command, std::vector<std::string> arguments);

}  // namespace muster::cmd
