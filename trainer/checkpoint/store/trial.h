#pragma once

#include <filesystem>

namespace muster::checkpoint {

// Tries whether the storage of `checkpoints`, a folder of checkpoints, can do what a checkpoint
// needs: make, write, sync, rename and remove a file and a folder, and read back what another
// descriptor has written. Throws Invalid (kBadConfig) naming what the storage cannot do, and
// WriteError for what may pass, such as a full disk. Leaves nothing behind.
void try_storage(const std::filesystem::path& checkpoints);

}  // namespace muster::checkpoint
