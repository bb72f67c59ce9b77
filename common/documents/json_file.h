#pragma once

#include <filesystem>

#include "common/documents/document.h"

namespace muster {

// Reads a JSON file. Returns null if it does not exist, cannot be read or is not whole
// (parse_or_null).
Json read_json_or_null(const std::filesystem::path& path);

}  // namespace muster
