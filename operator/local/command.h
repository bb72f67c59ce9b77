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

// The command of the container that counts in a pod template, as far as a process of this machine
// can follow it.
struct ContainerCommand {
  std::vector<std::string> command;  // expanded; empty: the image's own
  std::vector<std::string> arguments;
  Variables variables;            // ours, then the user's, which win but for reserved names
  std::string working_directory;  // empty: not said
  std::chrono::seconds grace{0};  // from SIGTERM to SIGKILL
  // The variables that have no value here, and why: "DB_PASSWORD (secretKeyRef)".
  std::vector<std::string> left_out;
};
ContainerCommand container_command(const Json& pod_template, const Variables& ours);

}  // namespace muster::local
