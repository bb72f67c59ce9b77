#include "common/program/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <utility>

namespace muster {

namespace {

using prometheus::MetricType;

std::optional<double> cpu_seconds() {
  timespec used{};
  if (::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) != 0) return std::nullopt;
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

// Returns the fields of /proc/self/stat from the third one on: the second one, the name of the
// program, may have spaces and brackets.
std::vector<std::string> fields_of_stat() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  const size_t end_of_name = text.rfind(')');
  if (end_of_name == std::string::npos) return {};
  std::istringstream rest(text.substr(end_of_name + 1));
  std::vector<std::string> fields;
  for (std::string field; rest >> field;) fields.push_back(field);
  return fields;
}

std::optional<double> number(const std::vector<std::string>& fields, size_t at) {
  if (at >= fields.size()) return std::nullopt;
  std::istringstream text(fields[at]);
  double value = 0;
  return text >> value ? std::optional(value) : std::nullopt;
}

// Returns the Unix time at which the machine was booted.
std::optional<double> boot_time() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    double seconds = 0;
    if (words >> name >> seconds && name == "btime") return seconds;
  }
  return std::nullopt;
}

std::optional<double> open_files() {
  std::error_code failed;
  double count = 0;
  std::filesystem::directory_iterator at("/proc/self/fd", failed);
  for (; !failed && at != std::filesystem::directory_iterator(); at.increment(failed)) ++count;
  return failed ? std::nullopt : std::optional(count - 1);  // one is the iterator's
}

std::optional<double> most_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  if (limit.rlim_cur == RLIM_INFINITY) return std::numeric_limits<double>::infinity();
  return static_cast<double>(limit.rlim_cur);
}

// Returns a counter of /proc/self/net/netstat, in which a line of names comes before the line of
// values.
std::optional<double> of_network(const std::string& wanted) {
  std::ifstream file("/proc/self/net/netstat");
  for (std::string names, values; std::getline(file, names) && std::getline(file, values);) {
    std::istringstream name_words(names), value_words(values);
    std::string name, group;
    double value = 0;
    name_words >> name;
    value_words >> group;
    while (name_words >> name && value_words >> value)
      if (group == "IpExt:" && name == wanted) return value;
  }
  return std::nullopt;
}

class Families {
 public:
  explicit Families(const std::map<std::string, std::string>& labels) : labels_(labels) {}
  void add(const char* name, MetricType type, const char* help, std::optional<double> value) {
    if (!value) return;
    prometheus::ClientMetric metric;
    for (const auto& [label, text] : labels_) metric.label.push_back({label, text});
    (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = *value;
    all.push_back({name, help, type, {std::move(metric)}});
  }
  std::vector<prometheus::MetricFamily> all;

 private:
  const std::map<std::string, std::string>& labels_;
};

}  // namespace

prometheus::MetricFamily build_info(const std::string& program, const std::string& version,
                                    const std::map<std::string, std::string>& labels) {
  std::map<std::string, std::string> all = labels;
  all["program"] = program;
  all["version"] = version;
  Families families(all);
  families.add("muster_build_info", MetricType::Gauge, "1, with the version of this program.", 1);
  return families.all.front();
}

std::vector<prometheus::MetricFamily> process_metrics(
    const std::map<std::string, std::string>& labels) {
  constexpr size_t kStartTime = 19, kVirtualMemory = 20, kResidentPages = 21;  // from field 3 on
  const std::vector<std::string> stat = fields_of_stat();
  const auto pages = number(stat, kResidentPages);
  static const std::optional<double> started = number(stat, kStartTime), booted = boot_time();
  const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  const auto tick = static_cast<double>(::sysconf(_SC_CLK_TCK));
  Families families(labels);
  families.add("process_cpu_seconds_total", MetricType::Counter,
               "Processor time that this process has used, in seconds.", cpu_seconds());
  families.add("process_resident_memory_bytes", MetricType::Gauge,
               "Memory of this process that is in RAM.",
               pages ? std::optional(*pages * page) : std::nullopt);
  families.add("process_virtual_memory_bytes", MetricType::Gauge,
               "Size of this process's address space.", number(stat, kVirtualMemory));
  families.add("process_open_fds", MetricType::Gauge, "File descriptors that are open.",
               open_files());
  families.add("process_max_fds", MetricType::Gauge, "File descriptors that may be open.",
               most_files());
  families.add("process_start_time_seconds", MetricType::Gauge,
               "Unix time at which this process was started.",
               started && booted ? std::optional(*booted + *started / tick) : std::nullopt);
  families.add("process_network_receive_bytes_total", MetricType::Counter,
               "Bytes that the network namespace of this process has received.",
               of_network("InOctets"));
  families.add("process_network_transmit_bytes_total", MetricType::Counter,
               "Bytes that the network namespace of this process has sent.",
               of_network("OutOctets"));
  return std::move(families.all);
}

double memory_limit_bytes(const std::string& groups) {
  constexpr double kNone = 1e18;  // version 1 has a number near 2^63 where there is no limit
  double bytes = 0;
  for (const char* file : {"/memory.max", "/memory/memory.limit_in_bytes"})
    if (std::ifstream(groups + file) >> bytes && bytes < kNone) return bytes;
  return std::numeric_limits<double>::infinity();
}

}  // namespace muster
