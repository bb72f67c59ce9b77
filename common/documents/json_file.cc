#include "common/documents/json_file.h"

#include "common/documents/json.h"
#include "common/system/file.h"

namespace muster {

Json read_json_or_null(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return nullptr;
  try {
    return parse_or_null(read_file(path, kLongestText));
  } catch (const std::runtime_error&) {
    return nullptr;  // removed or unreadable: like an absent file
  }
}

}  // namespace muster
