#pragma once

#include <chrono>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "common/error.h"

namespace muster {

// Reads a whole file. Throws Invalid naming the path if it does not exist, is not a regular file or
// has more than `most` bytes, Unavailable for an I/O error.
std::string read_file(const std::filesystem::path& path,
                      size_t most = std::numeric_limits<size_t>::max());

// The largest text, in bytes, that replicas write into a job's folder. Readers refuse a longer
// text, because anybody may have put it there, and it may not fit into memory.
constexpr size_t kLongestText = size_t{16} << 20;

// Whether `path` exists. Throws Unavailable if this cannot be found out because of a missing
// permission or an I/O error: a path that may not be looked at is not absent.
bool is_there(const std::filesystem::path& path);

// The error of a write that failed (ENOSPC, EACCES, EROFS, ...), with the path and the system's
// words. A process that ends because of it exits with kCannotWrite.
class WriteError : public Unavailable {
 public:
  explicit WriteError(const std::string& message, bool lasting = false)
      : Unavailable(message), lasting_(lasting) {}
  // "<what>: <the system's words for errno `error`>".
  WriteError(const std::string& what, int error);
  // True if waiting does not help: permissions are missing, or the path leads to a wrong place.
  bool lasting() const { return lasting_; }
  int error() const { return error_; }  // errno; 0: it had none

 private:
  bool lasting_;
  int error_ = 0;
};

// How long a writer that cannot continue without its write waits if a disk is full or a file server
// fails.
constexpr std::chrono::minutes kStoragePatience{10};

// Replaces `path` by `bytes` so that a reader sees the old file or the new one, never a part: a
// temporary file beside it, fsync, rename, fsync of the folder. Throws WriteError.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

// fsync of a folder, so that renames in it survive a crash. Throws WriteError.
void sync_directory(const std::filesystem::path& path);

// mkdir -p. Throws WriteError.
void create_directories(const std::filesystem::path& path);

// Makes this host see other hosts' changes of a folder on a file server. An NFS client remembers
// for up to a minute (acdirmax) which names are in a folder, and asks the server only when the
// folder is opened, so this function opens it. If the client believes that the folder does not
// exist, the function opens the parent first. Does nothing if that is not possible.
void look_anew(const std::filesystem::path& folder);

// Like is_there(), but asks the file server before it returns false.
bool is_there_anew(const std::filesystem::path& path);

// Returns the names in a folder, in no order, as its file server has them now; none if the folder
// does not exist. Throws Unavailable if the folder cannot be listed.
std::vector<std::string> names_in(const std::filesystem::path& folder);

}  // namespace muster
