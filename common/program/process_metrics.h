#pragma once

#include <prometheus/metric_family.h>

#include <map>
#include <string>
#include <vector>

namespace muster {

// Returns what /metrics says of this process, by the names of Prometheus' client libraries:
// process_cpu_seconds_total, process_resident_memory_bytes, process_virtual_memory_bytes,
// process_open_fds, process_max_fds, process_start_time_seconds,
// process_network_receive_bytes_total and process_network_transmit_bytes_total (of all processes of
// its network namespace: in a pod, of the pod). Each has `labels`. A number that the system does
// not tell is left out.
std::vector<prometheus::MetricFamily> process_metrics(
    const std::map<std::string, std::string>& labels = {});

// Returns muster_build_info: 1, with the program and its version, and `labels`.
prometheus::MetricFamily build_info(const std::string& program, const std::string& version,
                                    const std::map<std::string, std::string>& labels = {});

// Returns the limit of the memory of this process's container, by its control group (of version 2
// or 1, mounted at `groups`); infinity where there is none.
double memory_limit_bytes(const std::string& groups = "/sys/fs/cgroup");

}  // namespace muster
