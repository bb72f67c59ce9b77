#include "common/text/listed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace muster {

std::string listed(const std::vector<std::string>& names, size_t most) {
  const size_t named = std::min(most, names.size());
  const std::string text = fmt::format(
      "{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(named), ", "));
  return named == names.size() ? text : fmt::format("{} and {} more", text, names.size() - named);
}

}  // namespace muster
