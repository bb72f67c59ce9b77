#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "operator/local/copy/copy_sender.h"
#include "operator/local/hosts/survey.h"

namespace muster::local {

// Copies `copies` to each host, and creates the folder `folder` there without looking into it.
// Calls `meanwhile` from time to time. Returns a line for each host that something was sent to, and
// for each host that failed; a failed host is removed from `usable`.
std::vector<std::string> copy_to_hosts(const HostsFile& file, const std::filesystem::path& folder,
                                       const std::vector<Copy>& copies,
                                       std::vector<KnownHost>& usable,
                                       const std::function<void(const CopyProgress&)>& meanwhile);

// Returns "1.5 GB".
std::string size_text(uint64_t bytes);

}  // namespace muster::local
