#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "common/system/descriptor.h"

namespace muster::records {

// Writes a TFRecord file. The file is whole, on the disk and under its name once finish() has
// returned; without finish() it is removed. Throws WriteError.
class RecordWriter {
 public:
  // Replaces an existing file.
  explicit RecordWriter(std::filesystem::path path);
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  void write(std::string_view bytes);
  void finish();

  uint64_t count() const { return count_; }

 private:
  void flush();
  [[noreturn]] void fail() const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  Descriptor file_;
  std::string buffer_;
  uint64_t count_ = 0;
  bool finished_ = false;
};

}  // namespace muster::records
