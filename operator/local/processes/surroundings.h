#pragma once

#include <string>
#include <vector>

namespace muster::local {

// Returns this process's environment without the variables that Muster sets for each replica, and
// with two variables that make logs readable, unless they are set: MUSTER_LOG_FORMAT=text and
// PYTHONUNBUFFERED=1.
std::vector<std::string> inherited_environment();

// Sets a variable of an environment, a list of NAME=value; with `overwrite` false, only if the
// variable is not set.
void set_variable(std::vector<std::string>& environment, const std::string& name,
                  const std::string& value, bool overwrite);

// Returns PATH of an environment, or the system's usual one.
std::string path_in(const std::vector<std::string>& environment);

// Returns how many NVIDIA GPUs the driver of this machine shows.
int gpus_here();

}  // namespace muster::local
