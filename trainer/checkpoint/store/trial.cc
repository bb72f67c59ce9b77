#include "trainer/checkpoint/store/trial.h"

#include <cerrno>
#include <cstdio>
#include <string>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/system/file.h"
#include "trainer/checkpoint/store/unique_name.h"

namespace muster::checkpoint {

namespace {

namespace fs = std::filesystem;

// Leftovers with such a name are removed after an hour (temporary_folder.h).
fs::path new_folder(const fs::path& checkpoints) {
  return checkpoints / ("ckpt-trial.tmp-" + unique_name());
}

void try_files(const fs::path& folder, const fs::path& renamed) {
  const std::string bytes = "what a checkpoint needs of its storage";
  muster::create_directories(folder);
  write_file_atomically(folder / "file", bytes);
  sync_directory(folder);
  if (std::rename(folder.c_str(), renamed.c_str()) != 0)
    throw WriteError("cannot rename the folder " + folder.string(), errno);
  if (read_file(renamed / "file") != bytes)
    throw WriteError((renamed / "file").string() + ": other bytes are read than were written",
                     /*lasting=*/true);
  std::error_code error;
  fs::remove_all(renamed, error);
  if (error) throw WriteError("cannot remove " + renamed.string(), error.value());
}

}  // namespace

void try_storage(const fs::path& checkpoints) {
  const fs::path folder = new_folder(checkpoints), renamed = new_folder(checkpoints);
  std::error_code ignored;
  const bool is_new = !fs::exists(checkpoints, ignored);
  try {
    try_files(folder, renamed);
    if (is_new) fs::remove(checkpoints, ignored);
  } catch (const WriteError& error) {
    fs::remove_all(folder, ignored);
    fs::remove_all(renamed, ignored);
    if (is_new) fs::remove(checkpoints, ignored);
    if (!error.lasting()) throw;
    throw Invalid(
        std::string("expected a storage that can keep checkpoints, found one that cannot: ") +
            error.what(),
        kBadConfig);
  }
}

}  // namespace muster::checkpoint
