#pragma once

#include <filesystem>

namespace muster::checkpoint {

// Tests whether the storage of `checkpoints`, a folder of checkpoints, supports what a checkpoint
// needs: create, write, sync, rename and remove a file and a folder, and read what another
// descriptor has written. Throws Invalid (kBadConfig) naming the operation that the storage does
// not support, and WriteError for errors that may pass, for example a full disk. Leaves nothing
// behind.
void try_storage(const std::filesystem::path& checkpoints);

}  // namespace muster::checkpoint
