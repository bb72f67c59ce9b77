#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "common/digest.h"
#include "common/error.h"
#include "trainer/checkpoint/speed_limit.h"

namespace muster::checkpoint {

// A new file that is on the disk, whole, once finish() returned; removed again if it never does.
// Past the page cache where the file system can: to fill that with what nobody reads soon costs
// more CPU than all the rest, and memory that others need. Throws WriteError, also where `path`
// exists.
class DurableFile {
 public:
  // `limit`, which outlives it: sleeps so as not to write faster; null: never.
  explicit DurableFile(std::filesystem::path path, SpeedLimit* limit = nullptr);
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  void write(std::span<const std::byte> bytes);
  // fsync, and close with its result looked at: NFS reports a full disk only there.
  void finish();

  uint64_t bytes() const { return bytes_; }
  uint32_t crc32c() const { return crc_; }

 private:
  void flush();
  void open();
  bool leave_direct();
  [[noreturn]] void fail(const char* what);

  std::filesystem::path path_;
  SpeedLimit* const limit_;
  const SpeedLimit::Clock::time_point begun_ = SpeedLimit::Clock::now();
  int descriptor_ = -1;
  bool direct_ = true;
  std::vector<std::byte> memory_;
  std::span<std::byte> block_;  // in memory_, as direct writes want it
  size_t filled_ = 0;           // bytes of it
  bool finished_ = false;
  uint64_t bytes_ = 0;
  uint32_t crc_ = 0;
};

// A file that is there and that we may not read: no damage of it, whatever else may be wrong.
class Forbidden : public Invalid {
 public:
  using Invalid::Invalid;
};

// An open regular file, read by position. Not mapped: a file that another host removes or cuts is
// an error here, not a signal. Throws Invalid naming the path if it does not exist or is not a
// regular file or ends too early (Forbidden where permission is what lacks), Unavailable for an I/O
// error.
class InputFile {
 public:
  explicit InputFile(std::filesystem::path path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  uint64_t size() const { return size_; }
  const std::filesystem::path& path() const { return path_; }
  void read_at(uint64_t offset, std::span<std::byte> out) const;
  uint32_t crc32c() const;
  // The whole file; one of more than `most` bytes is Invalid.
  std::string text(uint64_t most) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

}  // namespace muster::checkpoint
