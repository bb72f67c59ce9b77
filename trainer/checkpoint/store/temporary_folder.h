#pragma once

#include <chrono>
#include <filesystem>
#include <system_error>
#include <vector>

namespace muster::checkpoint {

// A folder beside the published checkpoints with ".tmp-<unique>" in its name. A writer writes a new
// checkpoint in such a folder, and a checkpoint is renamed to one before it is removed.
struct TemporaryFolder {
  std::filesystem::path path;
  std::chrono::system_clock::time_point begun;
  bool pruned = false;  // a published checkpoint that is being removed

  // Removes the folder. The folder is renamed first, so that a writer that still uses it cannot
  // publish half a checkpoint. Returns the error of the renaming.
  std::error_code remove() const;
};

// Returns the temporary folders in a folder of checkpoints. Throws Unavailable if that folder
// cannot be listed.
std::vector<TemporaryFolder> temporary_folders(const std::filesystem::path& directory);

// Removes a published checkpoint, unless a reader gets a lease on it meanwhile. The folder is
// renamed first, so that no reader sees half a checkpoint. Returns the error because of which the
// checkpoint, or a part of it, still exists.
std::error_code remove_checkpoint(const std::filesystem::path& checkpoint);

}  // namespace muster::checkpoint
