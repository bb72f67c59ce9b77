#pragma once

#include <cstddef>
#include <span>

namespace muster::data {

enum class StorageKind {
  memory,          // the process's own
  temporary_file,  // an unlinked file in TMPDIR (else /tmp), mapped: its pages are the system's
                   // cache and may leave memory for the disk
};

// Zeroed bytes, aligned to pages, that live as long as the object. A memory page costs nothing
// before it is written, so a file header with too large a size costs nothing. A temporary file's
// space is allocated at once, so that a full disk causes an error here and not a signal later.
// Throws Unavailable for memory, WriteError for the file.
class Storage {
 public:
  Storage() = default;
  explicit Storage(size_t bytes, StorageKind kind = StorageKind::memory);
  ~Storage();
  Storage(Storage&& other) noexcept;
  Storage& operator=(Storage&& other) noexcept;

  std::span<std::byte> bytes() { return {data_, size_}; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  StorageKind kind() const { return kind_; }
  // Asks the system to read a part that is on the disk, without waiting for it.
  void will_need(size_t begin, size_t bytes) const;
  // Returns the bytes as floats.
  std::span<float> floats() { return {reinterpret_cast<float*>(data_), size_ / sizeof(float)}; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  StorageKind kind_ = StorageKind::memory;
};

}  // namespace muster::data
