#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "common/documents/document.h"

namespace muster::local {

using Variables = std::vector<std::pair<std::string, std::string>>;

// Expands variables as Kubernetes does: $(NAME) becomes the variable's value, $$ a dollar; an
// unknown $(NAME) stays.
std::string expand(const std::string& text, const Variables& variables);

// The command of the container that counts in a pod template, as far as a process on this machine
// can run it.
struct ContainerCommand {
  std::vector<std::string> command;  // expanded; empty: the image's own
  std::vector<std::string> arguments;
  Variables variables;            // Muster's, then the user's, which win except for reserved names
  std::string working_directory;  // empty: not given
  std::chrono::seconds grace{0};  // time from SIGTERM to SIGKILL
  // The variables that have no value on this machine, and why: "DB_PASSWORD (secretKeyRef)".
  std::vector<std::string> left_out;
};
ContainerCommand container_command(const Json& pod_template, const Variables& ours);

}  // namespace muster::local
