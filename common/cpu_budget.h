#pragma once

#include <string>

namespace muster {

// CPUs this process may use: the smaller of its affinity mask and its cgroup's quota, at least 1.
int cpu_budget();

// Whole CPUs of the smallest cgroup quota (v1 or v2) from the process's group up to the root, 0
// where none is set. `membership` is a /proc/<pid>/cgroup file, `root` where the cgroups are
// mounted.
int cgroup_cpu_quota(const std::string& membership, const std::string& root);

}  // namespace muster
