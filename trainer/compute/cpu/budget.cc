#include <sched.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "trainer/compute/cpu/engine.h"

namespace muster::compute {
namespace {

int affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

// Whole CPUs of a quota and a period in microseconds; 0: no limit.
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

// The smallest quota from this group up to the root. Within a container the path may belong to the
// host's view and not exist; the root then is the container's own group.
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

int cgroup_quota() {
  std::ifstream file("/proc/self/cgroup");
  int least = 0;
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    int here = 0;
    if (controllers == ",,") here = smallest("/sys/fs/cgroup", path, quota_v2);
    if (controllers.find(",cpu,") != std::string::npos) {
      here = smallest("/sys/fs/cgroup/cpu", path, quota_v1);
    }
    if (here > 0) least = least == 0 ? here : std::min(least, here);
  }
  return least;
}

}  // namespace

int cpu_budget() {
  const int quota = cgroup_quota();
  return quota > 0 ? std::min(quota, affinity()) : affinity();
}

namespace cpu {

// A barrier costs about what 20,000 multiplications do, and a step has some ten of them.
int worthwhile_threads(const Graph& graph, int64_t rows, int cpus) {
  constexpr double kWorthOneThread = 1e6;
  double multiplications = 0;
  for (const Node& node : graph.nodes) {
    if (!std::holds_alternative<Dense>(node.kind)) continue;
    multiplications += 3.0 * double(rows) * double(graph.values[size_t(node.inputs[0])].width) *
                       double(graph.values[size_t(node.output)].width);
  }
  const double worth = std::min(multiplications / kWorthOneThread, 1024.0);
  return std::clamp(static_cast<int>(worth), 1, std::max(1, cpus));
}

}  // namespace cpu
}  // namespace muster::compute
