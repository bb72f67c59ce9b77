#include "trainer/folder/folder_lease.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <system_error>

#include "common/error.h"
#include "common/program/log.h"
#include "common/random.h"
#include "common/system/file.h"
#include "common/system/system_words.h"
#include "common/threads/pause.h"

namespace muster::folder {

namespace fs = std::filesystem;

namespace {

constexpr char kLeaseFile[] = "lease";

// Returns the content of the file; nothing if there is no such file.
std::optional<std::string> read(const fs::path& path) {
  if (!is_there_anew(path)) return std::nullopt;
  try {
    return read_file(path, kLongestText);
  } catch (const Invalid&) {
    return std::nullopt;  // removed meanwhile, or not a lease
  }
}

// Opens a regular file. Another user may have put something else there: a link must not be written
// through, and a FIFO must not block the caller.
Descriptor open_regular(const fs::path& path, int flags) {
  Descriptor file(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666));
  struct stat status {};
  if (file && (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))) {
    file.reset();
    errno = EINVAL;
  }
  return file;
}

}  // namespace

FolderLease::FolderLease(const fs::path& storage, std::chrono::milliseconds renewal,
                         std::function<void()> watch)
    : path_(storage / kLeaseFile),
      process_(std::to_string(random_number())),
      renewal_(renewal),
      watch_(std::move(watch)) {
  write();
  lock();
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

FolderLease::~FolderLease() {
  thread_ = {};
  try {
    const auto text = read(path_);
    std::error_code ignored;
    if (text && text->starts_with(process_ + " ")) fs::remove(path_, ignored);
  } catch (const Unavailable& error) {
    log::info(std::string("the lease of the job's folder stays: ") + error.what());
  }
}

void FolderLease::run(const std::stop_token& stop) {
  while (pause_for(renewal_, stop)) {
    watch_();
    write();
  }
}

// The file is overwritten in place and always has the same length. So a renewal needs no free space
// on the disk, and a reader on another machine sees the renewal as soon as it opens the file, even
// if its client of the file server caches the folder's listing.
void FolderLease::write() {
  const std::string text = fmt::format("{} {:020}\n", process_, ++renewals_);
  const Descriptor file = open_regular(path_, O_WRONLY | O_CREAT);
  const bool written = file &&
                       ::pwrite(file.get(), text.data(), text.size(), 0) == ssize_t(text.size()) &&
                       ::ftruncate(file.get(), off_t(text.size())) == 0;
  if (!written && !failed_)
    log::warning(path_.string() + ": cannot say that this job trains here: " + system_words(errno));
  failed_ = !written;
}

// Another process may hold the lock: an earlier rank 0 of the same job that was considered lost.
void FolderLease::lock() {
  locked_ = open_regular(path_, O_RDWR);
  if (locked_ && ::flock(locked_.get(), LOCK_EX | LOCK_NB) != 0) locked_.reset();
}

bool is_locked(const fs::path& storage) {
  const fs::path path = storage / kLeaseFile;
  if (!is_there(path)) return false;
  const Descriptor file = open_regular(path, O_RDWR);
  return file && ::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

LeaseWatch::LeaseWatch(const fs::path& storage, std::chrono::milliseconds silence)
    : path_(storage / kLeaseFile), silence_(silence) {}

Holder LeaseWatch::look() {
  const auto text = read(path_);
  if (!text) return Holder::none;
  const auto now = Clock::now();
  const bool first = since_ == Clock::time_point{};
  if (first || *text != seen_) {
    seen_ = *text;
    since_ = now;
    return first ? Holder::undecided : Holder::alive;
  }
  return now - since_ < silence_ ? Holder::undecided : Holder::none;
}

}  // namespace muster::folder
