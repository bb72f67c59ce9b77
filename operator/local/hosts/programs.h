#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "operator/local/hosts/hosts_file.h"

namespace muster::local {

// muster and muster-trainer of this machine, with their libraries and the dynamic linker, so that
// they run on any Linux with this kind of processor.
struct Programs {
  std::vector<std::filesystem::path> files;  // the dynamic linker first
  std::string digest;                        // digest of names and content
};
// `with_tables`: also libmuster_tables.so, if it is there, which muster-trainer opens for a job
// with tables. Throws Unavailable, or Invalid if it cannot find out which libraries the programs
// need.
Programs find_programs(const std::filesystem::path& muster, const std::filesystem::path& trainer,
                       bool with_tables = false);

// Copies the programs to each host, into a folder of the user's cache that is named after their
// digest, and makes the hosts in `file` use them. Sends nothing to a host that has the folder
// already. Calls `meanwhile` from time to time. Returns a line for each host that the programs were
// sent to, and for each host that failed; a failed host is removed from `file`.
std::vector<std::string> send_programs(const Programs& programs, HostsFile& file,
                                       const std::function<void()>& meanwhile);

}  // namespace muster::local
