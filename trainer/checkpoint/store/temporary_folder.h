#pragma once

#include <chrono>
#include <filesystem>
#include <system_error>
#include <vector>

namespace muster::checkpoint {

// A folder beside the published checkpoints whose name has ".tmp-<unique>": a writer makes a new
// checkpoint in one, and a checkpoint becomes one before it is removed.
struct TemporaryFolder {
  std::filesystem::path path;
  std::chrono::system_clock::time_point begun;
  bool pruned = false;  // a published one that is being removed

  // Removes it. It is renamed first, so that a writer that still uses it cannot publish half of it.
  // Returns the error of the renaming.
  std::error_code remove() const;
};

// Returns those in a folder of checkpoints. Throws Unavailable if it cannot be listed.
std::vector<TemporaryFolder> temporary_folders(const std::filesystem::path& directory);

// Removes a published checkpoint, unless a reader gets a lease on it meanwhile. It is renamed
// first, so that no reader sees half a checkpoint. Returns the error for which it, or a part of it,
// is still there.
std::error_code remove_checkpoint(const std::filesystem::path& checkpoint);

}  // namespace muster::checkpoint
