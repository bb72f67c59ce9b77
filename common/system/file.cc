#include "common/system/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <system_error>

#include "common/random.h"
#include "common/system/descriptor.h"
#include "common/system/system_words.h"
#include "common/threads/watched_work.h"

namespace muster {

namespace {

namespace fs = std::filesystem;

int open_retrying(const fs::path& path, int flags, mode_t mode = 0) {
  int fd;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

bool is_lasting(int error) {
  switch (error) {
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case EFBIG:   // a limit of this process
    case EMFILE:  // likewise
    case ENOSYS:
    case EOPNOTSUPP:
    case EXDEV:
    case EINVAL:
      return true;
    default:
      return false;
  }
}

[[noreturn]] void fail_write(const char* verb, const fs::path& path, int error) {
  throw WriteError(std::string("cannot ") + verb + " " + path.string(), error);
}

void write_all(int fd, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      fail_write("write", path, errno);
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

// A file that is removed unless it is renamed to its final path.
class TemporaryFile {
 public:
  explicit TemporaryFile(const fs::path& target) {
    int fd = -1;
    do {
      char suffix[24];
      std::snprintf(suffix, sizeof suffix, ".%016" PRIx64 ".tmp", random_number());
      path_ = target.parent_path() / ("." + target.filename().string() + suffix);
      fd = open_retrying(path_, O_WRONLY | O_CREAT | O_EXCL, 0666);
    } while (fd < 0 && errno == EEXIST);
    if (fd < 0) fail_write("write", target, errno);
    fd_ = fd;
  }
  ~TemporaryFile() {
    if (!renamed_) ::unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  int fd() const { return fd_; }
  void rename_to(const fs::path& target) {
    if (::rename(path_.c_str(), target.c_str()) != 0) fail_write("write", target, errno);
    renamed_ = true;
  }

 private:
  fs::path path_;
  int fd_ = -1;
  bool renamed_ = false;
};

// Opens the folder. If the client believes that the folder does not exist, opens its parents first.
bool open_from_above(const fs::path& folder, int parents) {
  if (folder.empty()) return false;
  const auto open = [&] { return Descriptor(open_retrying(folder, O_RDONLY | O_DIRECTORY)); };
  if (open()) return true;
  return errno == ENOENT && parents > 0 && open_from_above(folder.parent_path(), parents - 1) &&
         open();
}

}  // namespace

WriteError::WriteError(const std::string& what, int error)
    : WriteError(what + ": " + system_words(error), is_lasting(error)) {
  error_ = error;
}

std::string read_file(const fs::path& path, size_t most) {
  const WatchedWork work(WatchedWork::Kind::storage, "reading", path.native());
  // O_NONBLOCK: opening a FIFO must not hang before fstat can refuse it.
  const Descriptor file(open_retrying(path, O_RDONLY | O_NONBLOCK));
  if (file.get() < 0) {
    const int error = errno;
    const std::string message = "cannot read " + path.string() + ": " + system_words(error);
    if (error == EIO || error == EMFILE || error == ENFILE || error == ENOMEM || error == ESTALE) {
      throw Unavailable(message);
    }
    throw Invalid(message);
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) {
    throw Unavailable("cannot read " + path.string() + ": " + system_words(errno));
  }
  if (!S_ISREG(status.st_mode)) {
    throw Invalid("cannot read " + path.string() + ": expected a regular file, found " +
                  (S_ISDIR(status.st_mode) ? "a directory" : "something else"));
  }
  const auto require_small = [&](size_t size) {
    if (size > most)
      throw Invalid("cannot read " + path.string() + ": expected at most " + std::to_string(most) +
                    " bytes, found " + std::to_string(size));
  };
  require_small(static_cast<size_t>(status.st_size));
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  size_t size = 0;
  for (;;) {
    if (size == bytes.size()) bytes.resize(bytes.size() + 4096);  // it may have grown
    const ssize_t got = ::read(file.get(), bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Unavailable("cannot read " + path.string() + ": " + system_words(errno));
    if (got == 0) break;
    size += static_cast<size_t>(got);
    require_small(size);
  }
  bytes.resize(size);
  return bytes;
}

bool is_there(const fs::path& path) {
  const WatchedWork work(WatchedWork::Kind::storage, "looking for", path.native());
  std::error_code error;
  const bool there = fs::exists(path, error);
  if (error) throw Unavailable("cannot look at " + path.string() + ": " + error.message());
  return there;
}

void write_file_atomically(const fs::path& path, std::string_view bytes) {
  const WatchedWork work(WatchedWork::Kind::storage, "writing", path.native());
  TemporaryFile temporary(path);
  Descriptor file(temporary.fd());
  write_all(file.get(), bytes, path);
  if (::fsync(file.get()) != 0) fail_write("write", path, errno);
  if (!file.close_checked()) fail_write("write", path, errno);
  temporary.rename_to(path);
  sync_directory(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

void sync_directory(const fs::path& path) {
  const WatchedWork work(WatchedWork::Kind::storage, "synchronizing", path.native());
  const Descriptor folder(open_retrying(path, O_RDONLY | O_DIRECTORY));
  if (folder.get() < 0) fail_write("synchronize", path, errno);
  // EINVAL: a file system that has no fsync for folders.
  if (::fsync(folder.get()) != 0 && errno != EINVAL) fail_write("synchronize", path, errno);
}

void create_directories(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error && !fs::is_directory(path, error) && !error)
    error.assign(ENOTDIR, std::generic_category());
  if (error) throw WriteError("cannot create directory " + path.string(), error.value());
}

void look_anew(const fs::path& folder) {
  const WatchedWork work(WatchedWork::Kind::storage, "looking anew at", folder.native());
  constexpr int kParents = 2;  // as in checkpoints/ckpt-1200-g3 of a job's folder
  static_cast<void>(open_from_above(folder, kParents));
}

bool is_there_anew(const fs::path& path) {
  if (is_there(path)) return true;
  look_anew(path.parent_path());
  return is_there(path);
}

std::vector<std::string> names_in(const fs::path& folder) {
  const WatchedWork work(WatchedWork::Kind::storage, "listing", folder.native());
  for (const bool again : {false, true}) {
    if (again) look_anew(folder);
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
      names.push_back(at->path().filename().string());
    if (!error) return names;
    if (error != std::errc::no_such_file_or_directory)
      throw Unavailable("cannot list " + folder.string() + ": " + error.message());
  }
  return {};
}

}  // namespace muster
