#include "operator/cmd/cluster/cluster_commands.h"

#include <algorithm>
#include <thread>

#include "common/documents/json.h"
#include "common/exit_code.h"
#include "common/program/output.h"
#include "operator/api/status.h"
#include "operator/cmd/cluster/cluster_status.h"
#include "operator/cmd/job/scale.h"
#include "operator/cmd/show/attention.h"
#include "operator/cmd/show/display.h"

namespace muster::cmd {

int show_cluster_status(const ClusterAccess& cluster, const std::string& name,
                        const std::string& output) {
  const Json object = cluster.job(name);
  ClusterJob seen{
      to_job(object), created_of(object), {}, changed_of(object), status_written_of(object)};
  seen.pods = cluster.pods_of(seen.job);
  if (output == "text") {
    print(stdout, "{}", status_text(seen, api::wall_time()));
  } else {
    print_value(status_json(seen), output);
  }
  return kSuccess;
}

int list_jobs(const ClusterAccess& cluster, bool all_namespaces, const std::string& output) {
  const std::vector<Json> jobs =
      cluster.client().list(kube::training_jobs(), all_namespaces ? "" : cluster.name_space(), {});
  if (output != "text") {
    print_value(jobs, output);
  } else if (jobs.empty()) {
    print(stderr, "muster: no TrainingJobs {}\n",
          all_namespaces ? "in this cluster" : "in the namespace " + cluster.name_space());
  } else {
    print(stdout, "{}", jobs_table(jobs, all_namespaces, api::wall_time()));
  }
  return kSuccess;
}

int delete_job(const ClusterAccess& cluster, const std::string& name, bool wait,
               const WaitOptions& waiting) {
  const api::TrainingJob job = to_job(cluster.job(name));
  kube::Client::RemoveOptions options;
  options.preconditions.uid = job.uid;
  if (!cluster.client().remove(kube::training_jobs(), {job.name_space, name}, options)) {
    cluster.throw_no_such_job(name);
  }
  print(stdout, "{} deleted\n", object_name(name));
  std::fflush(stdout);
  if (wait) wait_until_gone(cluster, job, waiting);
  return kSuccess;
}

int suspend_job(const ClusterAccess& cluster, const std::string& name, bool suspend) {
  const Json object = cluster.job(name);
  const bool before = bool_or(member(object, "spec"), "suspend", false);
  const api::JobStatus status = api::to_job_status(member(object, "status"));
  if (suspend && status.is_true("Finished")) {
    print(stdout, "{} unchanged: it has finished ({}), and there is nothing to suspend\n",
          object_name(name), status.is_true("Succeeded") ? "Succeeded" : "Failed");
    return kSuccess;
  }
  const char* done = suspend ? "suspended" : "resumed";
  if (before == suspend) {
    print(stdout, "{} unchanged: it is {} already\n", object_name(name),
          suspend ? done : "not suspended");
    return kSuccess;
  }
  kube::WriteOptions options;
  options.field_manager = "muster";
  kube::Preconditions same;
  same.uid = string_or(member(object, "metadata"), "uid", "");
  cluster.client().patch(kube::training_jobs(), {cluster.name_space(), name},
                         kube::PatchKind::merge, Json{{"spec", {{"suspend", suspend}}}}, same,
                         options);
  print(stdout, "{} {}\n", object_name(name), done);
  return kSuccess;
}

namespace {

// The time within which the leader should see a request (the kubelet takes a minute).
constexpr auto kSeen = std::chrono::minutes(2);

// Returns nothing while the API server does not answer.
std::optional<api::TrainingJob> look_at(const ClusterAccess& cluster, const std::string& name) {
  try {
    return to_job(cluster.job(name));
  } catch (const kube::ApiUnavailable& error) {
    if (!may_pass(error.status())) throw;
    return std::nullopt;
  }
}

CheckpointRequest::Met wait_until_met(const ClusterAccess& cluster, const api::TrainingJob& job,
                                      const CheckpointRequest& request,
                                      const CheckpointOptions& options) {
  using Clock = std::chrono::steady_clock;
  const std::string name = object_name(job.name);
  const auto begun = Clock::now();
  auto answered = begun;
  bool told = false;
  for (;; std::this_thread::sleep_for(options.every)) {
    if (const auto now = look_at(cluster, job.name)) {
      answered = Clock::now();
      if (now->uid != job.uid) cluster.throw_no_such_job(job.name);
      if (const auto met = request.met(now->status, now->checkpoint_request)) return *met;
      if (now->status.is_true("Finished") || now->status.is_true("Suspended"))
        throw Invalid(stopped_text(name, now->status));
      if (now->checkpoint_request.empty())
        throw Invalid(name + ": expected the annotation " + api::kCheckpointAnnotation +
                      " to stay, found that somebody has removed it");
    } else if (Clock::now() - answered >= kPatience) {
      throw Unavailable(name + ": expected an answer of the API server, found none for 5 minutes");
    }
    if (!told && Clock::now() - begun >= kSeen) {
      told = true;
      print(stderr,
            "{}: no checkpoint yet; a leader that an operator before this version has started does "
            "not see the request: suspend and resume the job\n",
            name);
    }
    if (options.timeout.count() > 0 && Clock::now() - begun >= options.timeout)
      throw Unavailable(late_text(name, options));
  }
}

}  // namespace

int checkpoint_cluster_job(const ClusterAccess& cluster, const std::string& name,
                           const CheckpointOptions& options) {
  const api::TrainingJob job = to_job(cluster.job(name));
  const CheckpointRequest request(job);
  if (job.status.is_true("Suspended")) throw_idle(job);
  if (!api::keeps_checkpoints(job)) {
    throw Invalid("job " + name +
                  ": expected spec.storage.volume, where checkpoints outlive the job's pods, found "
                  "none");
  }
  kube::WriteOptions written;
  written.field_manager = "muster";
  kube::Preconditions same;
  same.uid = job.uid;
  const Json annotations = {{api::kCheckpointAnnotation, request.text()}};
  cluster.client().patch(kube::training_jobs(), {cluster.name_space(), name},
                         kube::PatchKind::merge, Json{{"metadata", {{"annotations", annotations}}}},
                         same, written);
  if (!options.wait) {
    print(stdout, "{}: asked for a checkpoint\n", object_name(name));
    return kSuccess;
  }
  print(stdout, "{}: {}\n", object_name(name),
        wait_until_met(cluster, job, request, options).text());
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
