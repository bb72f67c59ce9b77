#pragma once

#include <filesystem>

namespace muster::checkpoint {

// Tries whether the storage of `checkpoints`, a folder of checkpoints, can do what a checkpoint
// needs: make, write, sync, rename and remove a file and a folder, and read back what another
// descriptor has written. Throws Invalid (kBadConfig) naming what the storage cannot do; WriteError
// for what may pass, such as a full disk, and for a limit of this process (EMFILE, EFBIG); and
// Unavailable for an I/O error of reading. Leaves nothing behind, whatever it throws.
void try_storage(const std::filesystem::path& checkpoints);

}  // namespace muster::checkpoint
