#include "operator/local/processes/surroundings.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>

namespace muster::local {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOurs[] = {
    "TF_CONFIG",           "MUSTER_JOB",       "MUSTER_JOB_UID",        "MUSTER_ROLE",
    "MUSTER_INDEX",        "MUSTER_ATTEMPT",   "MUSTER_REPLICAS",       "MUSTER_STORAGE",
    "MUSTER_TLS",          "MUSTER_TRAINING",  "MUSTER_HTTP_ADDRESS",   "MUSTER_THREADS",
    "MUSTER_REPLICATION",  "MUSTER_RESTARTS",  "MUSTER_LAST_EXIT_CODE", "MUSTER_RESTARTS_IN_PLACE",
    "MUSTER_POD_IP",       "MUSTER_ELASTIC",   "MUSTER_ADOPT",          "MUSTER_NAMESPACE",
    "MUSTER_PEER_PORTS",   "MUSTER_TF_CONFIG", "MUSTER_PS_HOSTS",       "MUSTER_CHIEF_HOSTS",
    "MUSTER_WORKER_HOSTS", "MUSTER_TRAINED"};

std::string name_in(const std::string& variable) {
  return variable.substr(0, variable.find('='));
}

}  // namespace

void set_variable(std::vector<std::string>& environment, const std::string& name,
                  const std::string& value, bool overwrite) {
  const auto found = std::ranges::find(environment, name, name_in);
  if (found == environment.end()) {
    environment.push_back(name + "=" + value);
  } else if (overwrite) {
    *found = name + "=" + value;
  }
}

std::string path_in(const std::vector<std::string>& environment) {
  const auto found = std::ranges::find(environment, "PATH", name_in);
  return found == environment.end() ? "/usr/local/bin:/usr/bin:/bin" : found->substr(5);
}

std::vector<std::string> inherited_environment() {
  std::vector<std::string> result;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (std::ranges::find(kOurs, name_in(*variable)) == std::end(kOurs))
      result.push_back(*variable);
  }
  set_variable(result, "MUSTER_LOG_FORMAT", "text", /*overwrite=*/false);
  set_variable(result, "PYTHONUNBUFFERED", "1", /*overwrite=*/false);
  return result;
}

int gpus_here() {
  std::error_code none;
  return static_cast<int>(
      std::distance(fs::directory_iterator("/proc/driver/nvidia/gpus", none), {}));
}

}  // namespace muster::local
