#include "trainer/checkpoint/store/trial.h"

#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/system/file.h"
#include "trainer/checkpoint/store/unique_name.h"

namespace muster::checkpoint {

namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "file";

// Leftovers with such a name are removed after an hour (temporary_folder.h).
fs::path new_folder(const fs::path& checkpoints) {
  return checkpoints / ("ckpt-trial.tmp-" + unique_name());
}

// Removes what the trial has made. It asks for no descriptor: there may be none left.
class Leftovers {
 public:
  Leftovers(const fs::path& checkpoints, std::vector<fs::path> folders)
      : checkpoints_(checkpoints), folders_(std::move(folders)) {
    std::error_code ignored;
    is_new_ = !fs::exists(checkpoints_, ignored);
  }
  ~Leftovers() {
    std::error_code ignored;
    for (const fs::path& folder : folders_) {
      fs::remove(folder / kFile, ignored);
      fs::remove(folder, ignored);
    }
    if (is_new_) fs::remove(checkpoints_, ignored);
  }
  Leftovers(const Leftovers&) = delete;
  Leftovers& operator=(const Leftovers&) = delete;

 private:
  const fs::path& checkpoints_;
  const std::vector<fs::path> folders_;
  bool is_new_ = false;
};

void try_files(const fs::path& folder, const fs::path& renamed) {
  const std::string bytes = "what a checkpoint needs of its storage";
  muster::create_directories(folder);
  write_file_atomically(folder / kFile, bytes);
  sync_directory(folder);
  if (std::rename(folder.c_str(), renamed.c_str()) != 0)
    throw WriteError("cannot rename the folder " + folder.string(), errno);
  if (read_file(renamed / kFile) != bytes)
    throw WriteError((renamed / kFile).string() + ": other bytes are read than were written",
                     /*lasting=*/true);
  std::error_code error;
  fs::remove_all(renamed, error);
  if (error) throw WriteError("cannot remove " + renamed.string(), error.value());
}

[[noreturn]] void fail(const std::string& why) {
  throw Invalid("expected a storage that can keep checkpoints, found one that cannot: " + why,
                kBadConfig);
}

}  // namespace

void try_storage(const fs::path& checkpoints) {
  const fs::path folder = new_folder(checkpoints), renamed = new_folder(checkpoints);
  const Leftovers leftovers(checkpoints, {folder, renamed});
  try {
    try_files(folder, renamed);
  } catch (const WriteError& error) {
    const bool is_of_process = error.error() == EMFILE || error.error() == EFBIG;
    if (!error.lasting() || is_of_process) throw;
    fail(error.what());
  } catch (const Invalid& error) {  // of reading
    fail(error.what());
  }
}

}  // namespace muster::checkpoint
