#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "common/system/descriptor.h"

namespace muster::records {

// Writes a TFRecord file. It has its name, whole and on the disk, once finish() has returned;
// without that it is removed again. Throws WriteError.
class RecordWriter {
 public:
  // Replaces a file that is there already.
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
