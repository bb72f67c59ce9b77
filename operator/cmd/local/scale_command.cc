#include <fmt/format.h>
#include <poll.h>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/output.h"
#include "operator/cmd/job/job_source.h"
#include "operator/cmd/job/scale.h"
#include "operator/cmd/job/stored_job.h"
#include "operator/cmd/local/commands.h"
#include "operator/local/run_lock.h"
#include "operator/local/scale_request.h"

namespace muster::cmd {

namespace {

constexpr auto kRunTakesAtMost = std::chrono::seconds(10);
constexpr int kPollMilliseconds = 20;

// Waits until the run that holds the lock has taken the request. If the run does not take it,
// because it has died or is stopped, removes the request and throws Unavailable.
void wait_until_scaled(const local::JobDirectory& directory, int workers) {
  const auto until = std::chrono::steady_clock::now() + kRunTakesAtMost;
  while (workers_of(load_stored_job(directory.root()).job) != workers) {
    const bool runs = local::RunLock::holder(directory).has_value();
    if (runs && std::chrono::steady_clock::now() < until) {
      ::poll(nullptr, 0, kPollMilliseconds);
      continue;
    }
    local::drop_scale_request(directory);
    throw Unavailable(
        fmt::format("{}: expected its `muster run` to scale the job within {} s, found that it {}",
                    shown(directory.root()), kRunTakesAtMost.count(),
                    runs ? "has not" : "has ended meanwhile"));
  }
}

}  // namespace

int scale_local_job(const std::filesystem::path& path, int workers) {
  const StoredJob stored = load_stored_job(path);
  require_scalable_here(stored.directory, stored.job, workers);
  const std::string name = shown(stored.directory.root());
  if (!local::RunLock::holder(stored.directory)) {
    throw Invalid(name + ": expected a job that runs, found that no `muster run` runs it; resume " +
                  "it with --set spec.replicaSpecs.worker.replicas=" + std::to_string(workers));
  }
  if (workers_of(stored.job) == workers) {
    print(stdout, "{}: unchanged: it has {} already\n", name, workers_text(workers));
    return kSuccess;
  }
  local::request_scale(stored.directory, workers);
  wait_until_scaled(stored.directory, workers);
  print(stdout, "{}: {}\n", name, scaled_text(stored.job, workers));
  return kSuccess;
}

}  // namespace muster::cmd
