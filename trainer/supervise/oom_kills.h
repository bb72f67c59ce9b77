#pragma once

#include <cstdint>
#include <filesystem>

namespace muster::supervise {

// How many processes of this container the kernel has killed for want of memory so far: oom_kill of
// memory.events (cgroup v2) or memory/memory.oom_control (v1) below `cgroup`. 0 where neither can
// be read.
uint64_t oom_kills(const std::filesystem::path& cgroup = "/sys/fs/cgroup");

}  // namespace muster::supervise
