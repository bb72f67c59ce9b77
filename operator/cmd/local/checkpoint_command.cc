#include <thread>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/output.h"
#include "operator/cmd/job/job_source.h"
#include "operator/cmd/job/stored_job.h"
#include "operator/cmd/local/commands.h"
#include "operator/local/checkpoint_request.h"
#include "operator/local/run_lock.h"

namespace muster::cmd {

namespace {

CheckpointRequest::Met wait_until_met(const local::JobDirectory& directory,
                                      const CheckpointRequest& request,
                                      const CheckpointOptions& options) {
  using Clock = std::chrono::steady_clock;
  const std::string name = shown(directory.root());
  const auto begun = Clock::now();
  for (;; std::this_thread::sleep_for(options.every)) {
    // The lock is read first, so that the last status of a run that ends in between is still read.
    const bool runs = local::RunLock::holder(directory).has_value();
    const api::JobStatus status = load_stored_job(directory.root()).job.status;
    if (const auto met = request.met(status, local::requested_checkpoint(directory))) return *met;
    if (!runs || status.is_true("Finished")) throw Invalid(stopped_text(name, status));
    if (options.timeout.count() > 0 && Clock::now() - begun >= options.timeout)
      throw Unavailable(late_text(name, options));
  }
}

}  // namespace

int checkpoint_local_job(const std::filesystem::path& path, const CheckpointOptions& options) {
  const StoredJob stored = load_stored_job(path);
  const CheckpointRequest request(stored.job);
  const std::string name = shown(stored.directory.root());
  if (!local::RunLock::holder(stored.directory))
    throw Invalid(name + ": expected a job that runs, found that no `muster run` runs it");
  local::request_checkpoint(stored.directory, request.text());
  if (!options.wait) {
    print(stdout, "{}: asked for a checkpoint\n", name);
    return kSuccess;
  }
  auto met = wait_until_met(stored.directory, request, options);
  met.folder = shown(met.folder);
  print(stdout, "{}: {}\n", name, met.text());
  return kSuccess;
}

}  // namespace muster::cmd
