#include "common/threads/cpu_budget.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace muster {

namespace {

int affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

// Returns the whole CPUs of a quota and a period in microseconds; 0: no limit.
int whole_cpus(double quota, double period) {
  if (quota <= 0 || period <= 0) return 0;
  return std::max(1, static_cast<int>(quota / period));
}

int quota_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max") return 0;
  return whole_cpus(std::strtod(quota.c_str(), nullptr), period);
}

int quota_v1(const std::string& folder) {
  double quota = 0, period = 0;
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us"),
      period_file(folder + "/cpu.cfs_period_us");
  if (!(quota_file >> quota) || !(period_file >> period)) return 0;
  return whole_cpus(quota, period);
}

// Returns the smallest quota from this group up to the root. Within a container the path may be the
// host's path and not exist; the root then is the container's own group.
template <typename Quota>
int smallest(const std::string& root, std::string path, Quota quota) {
  int least = 0;
  for (;;) {
    const int here = quota(root + path);
    if (here > 0) least = least == 0 ? here : std::min(least, here);
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos || path.empty()) return least;
    path.resize(slash);
  }
}

}  // namespace

int cgroup_cpu_quota(const std::string& membership, const std::string& root) {
  std::ifstream file(membership);
  int least = 0;
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    int here = 0;
    if (controllers == ",,") here = smallest(root, path, quota_v2);
    if (controllers.find(",cpu,") != std::string::npos) {
      here = smallest(root + "/cpu", path, quota_v1);
    }
    if (here > 0) least = least == 0 ? here : std::min(least, here);
  }
  return least;
}

int cpu_budget() {
  const int quota = cgroup_cpu_quota("/proc/self/cgroup", "/sys/fs/cgroup");
  return quota > 0 ? std::min(quota, affinity()) : affinity();
}

}  // namespace muster
