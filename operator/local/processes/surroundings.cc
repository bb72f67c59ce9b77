#include "operator/local/processes/surroundings.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "common/variables.h"

namespace muster::local {

namespace {

namespace fs = std::filesystem;

// Whether each replica has its own value of this variable.
bool is_of_a_replica(std::string_view name) {
  return std::ranges::any_of(variables(), [&](const Variable& variable) {
    return variable.name == name && variable.setter != Setter::user &&
           variable.setter != Setter::starter;
  });
}

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
    if (!is_of_a_replica(name_in(*variable))) result.push_back(*variable);
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
