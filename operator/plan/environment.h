#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operator/plan/values.h"

namespace muster::plan {

// The environment of one replica. TF_CONFIG has no evaluator in `cluster` and is unset (null, and
// not among the variables) for a job of one replica, unless its workers may change and become more.
struct ReplicaEnvironment {
  Json tf_config;  // null where unset
  std::vector<std::pair<std::string, std::string>>
      variables;  // TF_CONFIG and MUSTER_*, but for paths and addresses the cluster knows
};
// `address(role, index)` is "host:port".
ReplicaEnvironment environment(const api::TrainingJob& job, Role role, int index, int attempt,
                               const std::function<std::string(Role, int)>& address);

// Whether the variable is one of those for PyTorch, which environment() may set: each replica has
// values of its own, and a template may set it too.
bool is_for_pytorch(std::string_view variable);

}  // namespace muster::plan
