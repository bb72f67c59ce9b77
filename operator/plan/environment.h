#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operator/plan/values.h"

namespace muster::plan {

// The environment of one replica. `cluster` in TF_CONFIG has no evaluator. TF_CONFIG is unset
// (null, and not in `variables`) for a job of one replica, unless the number of its workers may
// grow.
struct ReplicaEnvironment {
  Json tf_config;  // null: unset
  // TF_CONFIG and MUSTER_*, without paths and addresses that only the cluster knows.
  std::vector<std::pair<std::string, std::string>> variables;
};
// `address(role, index)` is "host:port".
ReplicaEnvironment environment(const api::TrainingJob& job, Role role, int index, int attempt,
                               const std::function<std::string(Role, int)>& address);

// Whether environment() may set the variable for PyTorch. Each replica has its own value, and a
// template may set such a variable too.
bool is_for_pytorch(std::string_view variable);

}  // namespace muster::plan
