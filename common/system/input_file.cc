#include "common/system/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "common/digest.h"
#include "common/system/system_words.h"
#include "common/threads/watched_work.h"

namespace muster {

InputFile::InputFile(std::filesystem::path path) : path_(std::move(path)) {
  const WatchedWork work(WatchedWork::Kind::storage, "opening", path_.native());
  // O_NONBLOCK: opening a FIFO must not wait for its writer.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) {
    const std::string message =
        fmt::format("cannot open {}: {}", path_.string(), system_words(errno));
    if (errno == EACCES || errno == EPERM) throw Forbidden(message);
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ENAMETOOLONG ||
        errno == ENXIO || errno == EISDIR)
      throw Invalid(message);
    throw Unavailable(message);  // the error may be one of the storage and not of the file
  }
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) {
    const int error = errno;
    ::close(descriptor_);
    throw Unavailable(fmt::format("cannot read {}: {}", path_.string(), system_words(error)));
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    throw Invalid(fmt::format("{}: expected a regular file", path_.string()));
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

InputFile::~InputFile() {
  ::close(descriptor_);
}

void InputFile::read_at(uint64_t offset, std::span<std::byte> out) const {
  const WatchedWork work(WatchedWork::Kind::storage, "reading", path_.native());
  while (!out.empty()) {
    const ssize_t got = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      throw Unavailable(fmt::format("cannot read {}: {}", path_.string(), system_words(errno)));
    }
    if (got == 0) {
      throw Invalid(fmt::format("{}: truncated: expected {} more bytes at byte {}, found the end",
                                path_.string(), out.size(), offset));
    }
    offset += static_cast<uint64_t>(got);
    out = out.subspan(static_cast<size_t>(got));
    WatchedWork::beat();
  }
}

std::string InputFile::text(uint64_t most) const {
  if (size_ > most)
    throw Invalid(
        fmt::format("{}: expected at most {} bytes, found {}", path_.string(), most, size_));
  std::string bytes(size_, '\0');
  read_at(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

uint32_t InputFile::crc32c() const {
  std::vector<std::byte> chunk(std::min<uint64_t>(size_, 1 << 20));
  uint32_t crc = 0;
  for (uint64_t at = 0; at < size_; at += chunk.size()) {
    const auto part = std::span(chunk).first(std::min<uint64_t>(chunk.size(), size_ - at));
    read_at(at, part);
    crc = muster::crc32c(part, crc);
  }
  return crc;
}

}  // namespace muster
