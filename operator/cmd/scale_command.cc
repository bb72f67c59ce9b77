#include <fmt/format.h>
#include <poll.h>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/output.h"
#include "operator/api/overview.h"
#include "operator/cmd/cluster_commands.h"
#include "operator/cmd/commands.h"
#include "operator/cmd/job_source.h"
#include "operator/cmd/scale.h"
#include "operator/cmd/stored_job.h"
#include "operator/local/run_lock.h"
#include "operator/local/scale_request.h"

namespace muster::cmd {

namespace {

constexpr auto kRunTakesAtMost = std::chrono::seconds(10);
constexpr int kPollMilliseconds = 20;

int workers_of(const api::TrainingJob& job) {
  return job.replicas.at(api::Role::worker).replicas;
}

// The request is asked of the run that holds the lock: one that dies takes nothing any more, nor
// does one that is stopped.
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

std::string workers_text(int workers) {
  return std::to_string(workers) + (workers == 1 ? " worker" : " workers");
}

std::string scaled_text(const api::TrainingJob& job, int workers) {
  const bool changes = workers_of(job) != workers;
  const bool restarts = changes && !api::workers_may_change(job) && !job.suspend;
  return "scaled to " + workers_text(workers) +
         (restarts ? "; all replicas restart, to have the same TF_CONFIG" : "");
}

void require_scalable(const api::TrainingJob& job, int workers) {
  if (!job.replicas.contains(api::Role::worker)) {
    throw Invalid("job " + job.name + ": expected spec.replicaSpecs.worker, found none");
  }
  if (!job.training.is_null() && !job.elastic && !job.status.is_true("Suspended")) {
    throw Invalid("job " + job.name +
                  ": expected spec.elastic, for without it the number of workers of a job with "
                  "spec.training changes only while the job is suspended; found none");
  }
  const bool decided =
      job.status.is_true("SuccessCriteriaMet") || job.status.is_true("FailureTarget");
  if (decided) {
    throw Invalid("job " + job.name + ": expected one that trains, found one that is " +
                  api::state_word(job.status));
  }
  if (!job.elastic) return;
  const api::Elastic& elastic = *job.elastic;
  if (workers < elastic.min_replicas || workers > elastic.max_replicas) {
    throw Invalid(fmt::format(
        "--replicas: expected from {} to {}, minReplicas and maxReplicas of job {}'s spec.elastic; "
        "found {}",
        elastic.min_replicas, elastic.max_replicas, job.name, workers));
  }
}

void require_scalable_here(const local::JobDirectory& directory, const api::TrainingJob& job,
                           int workers) {
  require_scalable(job, workers);
  Document document = Document::load(directory.manifest());
  if (Json* const worker = document.find("spec.replicaSpecs.worker")) {
    (*worker)["replicas"] = workers;
  }
  require_no_problems(api::validate(document), kBadInput);
}

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

int scale_cluster_job(const ClusterAccess& cluster, const std::string& name, int workers) {
  const api::TrainingJob job = to_job(cluster.job(name));
  require_scalable(job, workers);
  if (workers_of(job) == workers) {
    print(stdout, "{} unchanged: it has {} already\n", object_name(name), workers_text(workers));
    return kSuccess;
  }
  kube::WriteOptions options;
  options.field_manager = "muster";
  kube::Preconditions same;
  same.uid = job.uid;
  const Json wanted = {{"replicaSpecs", {{"worker", {{"replicas", workers}}}}}};
  cluster.client().patch(kube::training_jobs(), {cluster.name_space(), name},
                         kube::PatchKind::merge, Json{{"spec", wanted}}, same, options);
  print(stdout, "{} {}\n", object_name(name), scaled_text(job, workers));
  return kSuccess;
}

}  // namespace muster::cmd
