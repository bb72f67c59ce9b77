#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

#include "operator/kube/cluster/job_states.h"

namespace muster::cmd {

// Returns the metrics that name jobs and namespaces: they are made for each answer of /metrics, so
// that those of a job go with the job, and only the leader has them. docs/reference/metrics.md
// lists them. `refused_tfjobs` are keys "<namespace>/<name>".
std::vector<prometheus::MetricFamily> job_metrics(kube::JobStates& jobs,
                                                  const std::vector<std::string>& refused_tfjobs,
                                                  api::Time now);

}  // namespace muster::cmd
