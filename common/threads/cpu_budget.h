#pragma once

#include <string>

namespace muster {

// The number of CPUs that this process may use: the smaller of its affinity mask and its cgroup's
// quota, at least 1.
int cpu_budget();

// Returns the whole CPUs of the smallest cgroup quota (v1 or v2) from the process's group up to the
// root, or 0 where no quota is set. `membership` is a /proc/<pid>/cgroup file; `root` is where the
// cgroups are mounted.
int cgroup_cpu_quota(const std::string& membership, const std::string& root);

}  // namespace muster
