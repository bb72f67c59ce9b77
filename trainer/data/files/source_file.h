#pragma once

#include <filesystem>
#include <fstream>
#include <optional>

#include "trainer/data/files/byte_stream.h"

namespace muster::data {

// A file of a data source, open to be read once.
class SourceFile {
 public:
  // Throws Invalid, "FILE: expected `what`, found no such file", if no regular file can be opened.
  SourceFile(const std::filesystem::path& path, const char* what);
  SourceFile(const SourceFile&) = delete;
  SourceFile& operator=(const SourceFile&) = delete;

  ByteStream& stream() { return *stream_; }

 private:
  std::ifstream file_;
  std::optional<ByteStream> stream_;
};

inline constexpr const char* kImages = "IDX images";
inline constexpr const char* kLabels = "IDX labels";

}  // namespace muster::data
