#pragma once

#include <cctype>
#include <string_view>

namespace muster {

// Whether a path begins with a Windows drive, for example C:\data, so that it means no file of this
// system.
inline bool is_windows_path(std::string_view path) {
  return path.size() > 2 && std::isalpha(static_cast<unsigned char>(path[0])) != 0 &&
         path[1] == ':' && (path[2] == '\\' || path[2] == '/');
}

}  // namespace muster
