#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "operator/local/copy/copy_sender.h"
#include "operator/local/hosts/survey.h"

namespace muster::local {

// Makes each host have the copies, and the folder `folder`, of which nothing is looked at. Calls
// `meanwhile` now and then. Returns a line for each host that was sent something, and for each that
// cannot be used because this failed: that one is taken out of `usable`.
std::vector<std::string> copy_to_hosts(const HostsFile& file, const std::filesystem::path& folder,
                                       const std::vector<Copy>& copies,
                                       std::vector<KnownHost>& usable,
                                       const std::function<void(const CopyProgress&)>& meanwhile);

// Returns "1.5 GB".
std::string size_text(uint64_t bytes);

}  // namespace muster::local
