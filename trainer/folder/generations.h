#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace muster::folder {

// The generations of a job's group, fenced on shared storage: generation n is owned by whoever made
// the folder generations/<n>, and mkdir lets only one do so.

// Far above what a job comes to. Who says that it is there is not believed.
constexpr uint64_t kLastGeneration = uint64_t{1} << 63;

// The highest generation opened so far, 0 for none. Throws Unavailable where that cannot be seen.
uint64_t newest_generation(const std::filesystem::path& storage);

// Opens the next generation above `at_least` and above every one on storage. Throws WriteError;
// Unavailable as above.
uint64_t open_generation(const std::filesystem::path& storage, uint64_t at_least);

// Throws Unavailable if somebody has opened a newer generation, or may have: what we hold is no
// longer ours to publish. Throws Invalid (kProtocol), naming it, if another job than the one with
// this uid has taken the folder.
void require_newest(const std::filesystem::path& storage, uint64_t generation,
                    const std::string& job_uid);

}  // namespace muster::folder
