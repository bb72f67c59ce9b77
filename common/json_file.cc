#include "common/json_file.h"

#include "common/file.h"

namespace muster {

Json read_json_or_null(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return nullptr;
  Json value;
  try {
    value = Json::parse(read_file(path), nullptr, /*allow_exceptions=*/false);
  } catch (const std::runtime_error&) {
    return nullptr;  // it went away, or cannot be read: as good as absent
  }
  return value.is_discarded() ? Json(nullptr) : value;
}

}  // namespace muster
