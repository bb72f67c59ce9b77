#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/api/training_job.h"
#include "operator/kube/api/objects.h"

namespace muster::cmd {

// What `muster status` and `muster list` show of jobs on a cluster. Pure.

struct ClusterJob {
  api::TrainingJob job;
  std::optional<api::Time> created;
  std::vector<kube::Pod> pods;
  std::optional<api::Time> changed = {};  // attention.h; nothing: not known
};

// metadata.creationTimestamp of an object.
std::optional<api::Time> created_of(const Json& object);

// "47s", "12m", "3h", "6d": how long ago; "-" where that is not known.
std::string age_text(const std::optional<api::Time>& since, api::Time now);

// State, progress, that no operator looks at the job, what a training that has succeeded has come
// to, a line for each replica, what keeps replicas from running, conditions.
std::string status_text(const ClusterJob& seen, api::Time now);

// {name, namespace, state, created, progress, summary (summary.h; null before the job has
// succeeded), replicas: [{name, state, ready, restarts, exitCode,
// attempt, pod, node, created, reason}], status}; null where unknown.
Json status_json(const ClusterJob& seen);

// A line for each TrainingJob, as the API server gives them.
std::string jobs_table(const std::vector<Json>& jobs, bool with_namespace, api::Time now);

}  // namespace muster::cmd
