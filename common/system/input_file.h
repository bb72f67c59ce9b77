#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "common/error.h"

namespace muster {

// Thrown for a file that exists but that we may not read. The file need not be damaged.
class Forbidden : public Invalid {
 public:
  using Invalid::Invalid;
};

// An open regular file, read by position. The file is not mapped: if another host removes or
// truncates it, reading throws an error, and no signal comes. Throws Invalid naming the path if it
// does not exist, is not a regular file or ends too early (Forbidden if permission is missing), and
// Unavailable for an I/O error.
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
  // Returns the whole file. Throws Invalid if it has more than `most` bytes.
  std::string text(uint64_t most) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

}  // namespace muster
