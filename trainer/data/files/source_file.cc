#include "trainer/data/files/source_file.h"

#include <fmt/format.h>

#include <cerrno>

#include "common/error.h"
#include "common/system/system_words.h"

namespace muster::data {

namespace fs = std::filesystem;

SourceFile::SourceFile(const fs::path& path, const char* what) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    throw Invalid(fmt::format("{}: expected {}, found no such file{}", path.string(), what,
                              error && error != std::errc::no_such_file_or_directory
                                  ? " (" + error.message() + ")"
                                  : ""));
  }
  if (!fs::is_regular_file(status)) {
    throw Invalid(fmt::format("{}: expected {}, found something that is no regular file",
                              path.string(), what));
  }
  file_.open(path, std::ios::binary);
  if (!file_) {
    throw Invalid(fmt::format("{}: expected {}, cannot open it: {}", path.string(), what,
                              system_words(errno)));
  }
  stream_.emplace(file_, path.string(), fs::file_size(path));
}

}  // namespace muster::data
