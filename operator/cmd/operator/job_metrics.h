#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "operator/controller/ledgers.h"
#include "operator/kube/cluster/job_states.h"

namespace muster::cmd {

// Writes the metrics that name jobs and namespaces, in Prometheus' text format: they are made for
// each answer of /metrics, so that those of a job go with the job. docs/reference/metrics.md lists
// them. `refused_tfjobs` are keys "<namespace>/<name>".
void write_job_metrics(std::ostream& out, kube::JobStates& jobs, const controller::Ledgers& ledgers,
                       const std::vector<std::string>& refused_tfjobs, api::Time now);

}  // namespace muster::cmd
