#include "trainer/checkpoint/files/durable_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "common/digest.h"
#include "common/system/file.h"
#include "common/threads/watched_work.h"

namespace muster::checkpoint {

namespace {
constexpr size_t kBlock = 1 << 20;
constexpr size_t kAlignment = 4096;  // alignment of offsets, sizes and memory of direct writes

std::byte* map_block() {
  void* block = ::mmap(nullptr, kBlock, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(block);
}
}  // namespace

void DurableFile::Unmap::operator()(std::byte* block) const {
  ::munmap(block, kBlock);
}

DurableFile::DurableFile(std::filesystem::path path, SpeedLimit* limit)
    : path_(std::move(path)), limit_(limit), block_(map_block()) {
  open();
}

void DurableFile::open() {
  const WatchedWork work(WatchedWork::Kind::storage, "creating", path_.native());
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  descriptor_ = ::open(path_.c_str(), kFlags | O_DIRECT, 0666);
  if (descriptor_ < 0 && errno == ENOENT) {
    look_anew(path_.parent_path());  // another host has created the folder
    descriptor_ = ::open(path_.c_str(), kFlags | O_DIRECT, 0666);
  }
  if (descriptor_ < 0 && errno == EINVAL) {
    // Some systems notice only after creating the file that they cannot do direct writes.
    (void)::unlink(path_.c_str());
    direct_ = false;
    descriptor_ = ::open(path_.c_str(), kFlags, 0666);
  }
  if (descriptor_ >= 0) return;
  finished_ = true;  // the existing file must not be removed
  fail("cannot create");
}

bool DurableFile::leave_direct() {
  if (!std::exchange(direct_, false)) return false;
  return ::fcntl(descriptor_, F_SETFL, ::fcntl(descriptor_, F_GETFL) & ~O_DIRECT) == 0;
}

DurableFile::~DurableFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!finished_) ::unlink(path_.c_str());
}

void DurableFile::write(std::span<const std::byte> bytes) {
  crc_ = muster::crc32c(bytes, crc_);
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    const size_t size = std::min(bytes.size(), kBlock - filled_);
    std::memcpy(block_.get() + filled_, bytes.data(), size);
    filled_ += size;
    bytes = bytes.subspan(size);
    if (filled_ == kBlock) flush();
  }
}

void DurableFile::flush() {
  write_out({block_.get(), std::exchange(filled_, 0)});
  if (limit_) limit_->wait(begun_, bytes_);
}

void DurableFile::write_out(std::span<const std::byte> rest) {
  const WatchedWork work(WatchedWork::Kind::storage, "writing", path_.native());
  while (!rest.empty()) {
    const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EINVAL && leave_direct()) continue;
    if (written < 0) fail("cannot write");
    rest = rest.subspan(static_cast<size_t>(written));
    WatchedWork::beat();
  }
}

void DurableFile::finish() {
  if (filled_ % kAlignment != 0) leave_direct();
  flush();
  const WatchedWork work(WatchedWork::Kind::storage, "writing", path_.native());
  if (::fsync(descriptor_) != 0) fail("cannot write");
  if (::close(std::exchange(descriptor_, -1)) != 0) fail("cannot write");
  finished_ = true;
}

void DurableFile::fail(const char* what) {
  throw WriteError(fmt::format("{} {}", what, path_.string()), errno);
}

}  // namespace muster::checkpoint
