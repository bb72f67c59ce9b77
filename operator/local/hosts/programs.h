#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "operator/local/hosts/hosts_file.h"

namespace muster::local {

// muster and muster-trainer as they run here, with the libraries that they need and the dynamic
// linker: so that they run on any Linux for this processor.
struct Programs {
  std::vector<std::filesystem::path> files;  // the dynamic linker first
  std::string digest;                        // of names and content
};
// Throws Unavailable, or Invalid if it is not found out which libraries they need.
Programs find_programs(const std::filesystem::path& muster, const std::filesystem::path& trainer);

// Makes each host have the programs, in a folder of the user's cache that is named after their
// digest, and the file's hosts use these. A host that has that folder is sent nothing. Calls
// `meanwhile` now and then. Returns a line for each host that was sent them, and for each that
// cannot be used because this failed: that one is taken out of the file.
std::vector<std::string> send_programs(const Programs& programs, HostsFile& file,
                                       const std::function<void()>& meanwhile);

}  // namespace muster::local
