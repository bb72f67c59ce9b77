#pragma once

#include <cstdint>
#include <filesystem>

namespace muster::supervise {

// Returns the number of this container's processes that the kernel has killed because memory was
// short: oom_kill of memory.events (cgroup v2) or memory/memory.oom_control (v1) below `cgroup`.
// Returns 0 if neither can be read.
uint64_t oom_kills(const std::filesystem::path& cgroup = "/sys/fs/cgroup");

}  // namespace muster::supervise
