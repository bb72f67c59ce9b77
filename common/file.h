#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

#include "common/error.h"

namespace muster {

// Reads a whole file. Throws Invalid naming the path if it does not exist or is not a regular file,
// Unavailable for an I/O error.
std::string read_file(const std::filesystem::path& path);

// Whether there is anything at `path`. Throws Unavailable where that cannot be told, for lack of
// permission or an I/O error: what nobody may look at is not absent.
bool is_there(const std::filesystem::path& path);

// A write that failed (ENOSPC, EACCES, EROFS, ...): path and the system's words. A process that it
// ends exits with kCannotWrite.
class WriteError : public Unavailable {
 public:
  explicit WriteError(const std::string& message, bool lasting = false)
      : Unavailable(message), lasting_(lasting) {}
  // "<what>: <the system's words for errno `error`>".
  WriteError(const std::string& what, int error);
  // No wait will mend it here: a matter of rights, or of where the path leads.
  bool lasting() const { return lasting_; }

 private:
  bool lasting_;
};

// How long who must write waits for a full disk, or a file server that fails.
constexpr std::chrono::minutes kStoragePatience{10};

// Replaces `path` by `bytes` so that a reader sees the old file or the new one, never a part: a
// temporary file beside it, fsync, rename, fsync of the folder. Throws WriteError.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

// fsync of a folder, so that renames in it survive a crash. Throws WriteError.
void sync_directory(const std::filesystem::path& path);

// mkdir -p. Throws WriteError.
void create_directories(const std::filesystem::path& path);

}  // namespace muster
