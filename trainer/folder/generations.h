#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace muster::folder {

// The generations of a job's group, fenced on shared storage: the process that makes the folder
// generations/<n> owns generation n, and mkdir lets only one process do so.

// Far above the generations of any real job. The state of a peer that has reached this number is
// rejected.
constexpr uint64_t kLastGeneration = uint64_t{1} << 63;

// Returns the highest generation opened so far, 0 for none. Throws Unavailable if the storage
// cannot be read.
uint64_t newest_generation(const std::filesystem::path& storage);

// Opens the next generation above `at_least` and above every generation on the storage. Throws
// WriteError, and Unavailable if the storage cannot be read.
uint64_t open_generation(const std::filesystem::path& storage, uint64_t at_least);

// Throws Unavailable if another process has opened a newer generation, or may have opened one: then
// this process may not publish any more. Throws Invalid (kProtocol), naming the other job, if a job
// with another uid has taken the folder.
void require_newest(const std::filesystem::path& storage, uint64_t generation,
                    const std::string& job_uid);

}  // namespace muster::folder
