#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace muster::group {

// The generations of a job's group, fenced on shared storage: generation n is owned by whoever made
// the folder generations/<n>, and mkdir lets only one do so.

// Far above what a job comes to. Who says that it is there is not believed.
constexpr uint64_t kLastGeneration = uint64_t{1} << 63;

// The job that a generation is of. Only one at a time may use a folder; a later one goes on from
// what it finds.
struct Owner {
  std::string uid;
  std::string job;  // its name
};

// The highest generation opened so far, 0 for none. Throws Unavailable where that cannot be seen.
uint64_t newest_generation(const std::filesystem::path& storage);

// Opens the next generation above `at_least` and above every one on storage, and leaves in its
// folder whose it is, if that can be written. Throws WriteError; Unavailable as above.
uint64_t open_generation(const std::filesystem::path& storage, uint64_t at_least,
                         const Owner& owner = {});

// Throws Invalid (kProtocol), naming it, if another job than `owner` has opened the generation;
// Unavailable where that cannot be told.
void require_of_job(const std::filesystem::path& storage, uint64_t generation, const Owner& owner);

// Throws Unavailable if somebody has opened a newer generation, or may have: what we hold is no
// longer ours to publish. Invalid as above if that was another job.
void require_newest(const std::filesystem::path& storage, uint64_t generation,
                    const Owner& owner = {});

}  // namespace muster::group
