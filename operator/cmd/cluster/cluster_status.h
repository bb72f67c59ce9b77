#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/api/training_job.h"
#include "operator/kube/api/objects.h"

namespace muster::cmd {

// Texts of `muster status` and `muster list` for jobs on a cluster. The functions are pure.

struct ClusterJob {
  api::TrainingJob job;
  std::optional<api::Time> created;
  std::vector<kube::Pod> pods;
  std::optional<api::Time> changed = {};         // see attention.h; nothing: not known
  std::optional<api::Time> status_written = {};  // see attention.h; nothing: not known
};

// Returns metadata.creationTimestamp of an object.
std::optional<api::Time> created_of(const Json& object);

// Returns how long ago `since` was: "47s", "12m", "3h", "6d"; "-" if it is not known.
std::string age_text(const std::optional<api::Time>& since, api::Time now);

// Returns the state, the progress, a note if no operator looks at the job, the results of a
// training that has succeeded, a line for each replica, the reasons why replicas do not run, and
// the conditions.
std::string status_text(const ClusterJob& seen, api::Time now);

// Returns {name, namespace, state, created, asOf (when the operator wrote the status last),
// progress, summary (summary.h; null before the job has succeeded), replicas: [{name, state, ready,
// restarts, exitCode, attempt, pod, node, created, reason}], status}; null where unknown.
Json status_json(const ClusterJob& seen);

// Returns a table with a line for each TrainingJob, given as the API server returns them.
std::string jobs_table(const std::vector<Json>& jobs, bool with_namespace, api::Time now);

}  // namespace muster::cmd
