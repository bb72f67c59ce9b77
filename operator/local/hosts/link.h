#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "operator/local/hosts/protocol.h"

namespace muster::local {

// `muster host link`, the process here that stands for a replica on another host, follows this
// order.
struct LinkOrder {
  std::vector<std::string> command;  // that runs `muster host run` there
  HostRequest request;
  std::filesystem::path loss;  // where to say why the host was lost
};
void write_link_order(const std::filesystem::path& path, const LinkOrder& order);

// Runs the replica that the file orders, passes SIGTERM on to it, and writes its output to
// standard output. Returns its exit code. If the host is lost, cannot be reached or cannot run the
// replica, writes one sentence to `loss` and returns ssh's own code for that, 255. If this process
// is killed, so is the replica.
int run_link(const std::filesystem::path& path);

}  // namespace muster::local
