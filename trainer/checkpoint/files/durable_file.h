#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "common/digest.h"
#include "common/error.h"
#include "trainer/checkpoint/files/speed_limit.h"

namespace muster::checkpoint {

// A new file. The file is whole and on the disk once finish() has returned; without finish() it is
// removed. It bypasses the page cache if the file system supports this: filling the cache with
// bytes that nobody reads soon would cost more CPU time than everything else, and memory that
// others need. Throws WriteError, also if `path` exists.
class DurableFile {
 public:
  // `limit` must outlive the file. Writing sleeps to keep below the limit; null: no limit.
  explicit DurableFile(std::filesystem::path path, SpeedLimit* limit = nullptr);
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  void write(std::span<const std::byte> bytes);
  // Does fsync and close, and checks the result of both: NFS reports a full disk only there.
  void finish();

  uint64_t bytes() const { return bytes_; }
  uint32_t crc32c() const { return crc_; }

 private:
  void flush();
  void write_out(std::span<const std::byte> rest);
  void open();
  bool leave_direct();
  [[noreturn]] void fail(const char* what);

  std::filesystem::path path_;
  SpeedLimit* const limit_;
  const SpeedLimit::Clock::time_point begun_ = SpeedLimit::Clock::now();
  int descriptor_ = -1;
  bool direct_ = true;
  struct Unmap {
    void operator()(std::byte* block) const;
  };
  // Bytes that are not yet written, aligned for direct writes. The memory is mapped, not from the
  // heap: a ps writes each checkpoint on another thread of gRPC, and the heap of each thread would
  // keep such a block for ever.
  std::unique_ptr<std::byte, Unmap> block_;
  size_t filled_ = 0;  // bytes of block_
  bool finished_ = false;
  uint64_t bytes_ = 0;
  uint32_t crc_ = 0;
};

}  // namespace muster::checkpoint
