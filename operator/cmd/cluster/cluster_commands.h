#pragma once

#include <string>
#include <vector>

#include "operator/cmd/cluster/cluster_access.h"
#include "operator/cmd/cluster/job_wait.h"
#include "operator/cmd/job/checkpoint_request.h"

namespace muster::cmd {

// The commands of `muster` on a cluster. Like those of commands.h, each returns the exit code of
// the process and prints its results to stdout.

struct SubmitOptions {
  std::vector<std::filesystem::path> files;
  std::vector<std::string> sets;  // path=value
  bool force = false;             // take fields that another manager has set
  bool wait = false;
  WaitOptions waiting;
};
// Returns the manifests as the user wrote them. Throws Invalid with every problem, in the words of
// `muster validate`; data files are on the cluster and are not checked here.
std::vector<Json> checked_manifests(const SubmitOptions& options);
// Applies each manifest (server-side apply as `muster`) and prints "trainingjob.muster.dev/mnist
// created", configured or unchanged. `name_space` is the one that the user asked for, or empty.
// With `wait`, returns the code of wait_until_finished().
int submit_jobs(const ClusterAccess& cluster, const std::vector<Json>& manifests,
                const std::string& name_space, const SubmitOptions& options);

// `output` is text, json or yaml.
int show_cluster_status(const ClusterAccess& cluster, const std::string& name,
                        const std::string& output);
int list_jobs(const ClusterAccess& cluster, bool all_namespaces, const std::string& output);

// Deletes the job; with `wait`, returns only when the job and its pods are gone.
int delete_job(const ClusterAccess& cluster, const std::string& name, bool wait,
               const WaitOptions& waiting);

// Sets spec.suspend.
int suspend_job(const ClusterAccess& cluster, const std::string& name, bool suspend);

// Sets spec.replicaSpecs.worker.replicas of an elastic job, as `kubectl scale` does.
int scale_cluster_job(const ClusterAccess& cluster, const std::string& name, int workers);

// Sets the annotation muster.dev/checkpoint to a new text and, if options.wait, waits until
// status.progress says that the request is met.
int checkpoint_cluster_job(const ClusterAccess& cluster, const std::string& name,
                           const CheckpointOptions& options);

struct UsageOptions {
  std::string name = "muster-usage";  // of the ConfigMap, in the operator's namespace
  std::string month;                  // "2026-11"; empty: all that are kept
  std::string output = "text";        // or json or yaml
};
// Prints what the jobs of each namespace have used, as the operator's leader has counted it.
int show_usage(const ClusterAccess& cluster, const UsageOptions& options);

struct ClusterLogOptions {
  std::string job;
  std::vector<std::string> replicas;  // "worker", "worker-1"; empty: all
  int tail = -1;                      // lines of each; -1: all
  bool follow = false;                // until the job has finished; waits while it is pending
  bool json = false;                  // a JSON object a line (log_printer.h)
  std::chrono::milliseconds every{1000};
};
int show_cluster_logs(const ClusterAccess& cluster, const ClusterLogOptions& options);

}  // namespace muster::cmd
