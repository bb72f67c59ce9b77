#include "trainer/data/files/storage.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "common/environment.h"
#include "common/system/file.h"
#include "common/system/system_words.h"

namespace muster::data {
namespace {

std::filesystem::path temporary_folder() {
  return environment_variable("TMPDIR", "/tmp");
}

// Returns an open temporary file that has no name any more.
int open_unlinked(const std::filesystem::path& folder, size_t bytes) {
  std::string name = folder / "muster-data-XXXXXX";
  const int file = ::mkostemp(name.data(), O_CLOEXEC);
  int error = file < 0 ? errno : 0;
  if (file >= 0) {
    ::unlink(name.c_str());
    do {
      error = ::posix_fallocate(file, 0, static_cast<off_t>(bytes));
    } while (error == EINTR);
    if (error != 0) ::close(file);
  }
  if (error != 0) {
    throw WriteError(fmt::format("cannot keep {} bytes of samples in a temporary file in {}: {}",
                                 bytes, folder.string(), system_words(error)));
  }
  return file;
}

void* map(size_t bytes, StorageKind kind) {
  constexpr int kAccess = PROT_READ | PROT_WRITE;
  if (kind == StorageKind::memory) {
    return ::mmap(nullptr, bytes, kAccess, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  const int file = open_unlinked(temporary_folder(), bytes);
  void* data = ::mmap(nullptr, bytes, kAccess, MAP_SHARED, file, 0);
  ::close(file);
  return data;
}

}  // namespace

Storage::Storage(size_t bytes, StorageKind kind) : size_(bytes), kind_(kind) {
  if (bytes == 0) return;
  void* data = map(bytes, kind);
  if (data == MAP_FAILED) {
    throw Unavailable(
        fmt::format("cannot have {} bytes for samples: {}", bytes, system_words(errno)));
  }
  // Samples are read at random, and larger pages cause fewer TLB misses. The call is only advice.
  if (kind == StorageKind::memory) ::madvise(data, bytes, MADV_HUGEPAGE);
  data_ = static_cast<std::byte*>(data);
}

Storage::~Storage() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

Storage::Storage(Storage&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      kind_(other.kind_) {}

Storage& Storage::operator=(Storage&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(kind_, other.kind_);
  return *this;
}

void Storage::will_need(size_t begin, size_t bytes) const {
  if (kind_ == StorageKind::memory || bytes == 0) return;
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t first = begin / page * page;
  ::madvise(data_ + first, begin + bytes - first, MADV_WILLNEED);
}

}  // namespace muster::data
