#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "operator/local/hosts/protocol.h"

namespace muster::local {

// The order to `muster host link`, the process on this machine that represents a replica on another
// host.
struct LinkOrder {
  std::vector<std::string> command;  // the command that runs `muster host run` on the host
  HostRequest request;
  std::filesystem::path loss;  // file for the reason why the host was lost
};
void write_link_order(const std::filesystem::path& path, const LinkOrder& order);

// Runs the replica of the order in the file, passes SIGTERM on to the replica, and writes the
// replica's output to standard output. Returns its exit code. If the host is lost, cannot be
// reached or cannot run the replica, writes one sentence to `loss` and returns 255, ssh's own code
// for this case. If this process is killed, so is the replica.
int run_link(const std::filesystem::path& path);

}  // namespace muster::local
