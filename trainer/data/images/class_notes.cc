#include "trainer/data/images/class_notes.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/text/listed.h"

namespace muster::data {

std::vector<std::string> notes_of_classes(const std::vector<bool>& seen,
                                          const std::vector<std::string>& names,
                                          const std::string& where) {
  constexpr size_t kMostNamed = 5;
  std::vector<std::string> missing;
  for (size_t label = 0; label < seen.size(); ++label)
    if (!seen[label]) missing.push_back(names.empty() ? std::to_string(label) : names[label]);
  if (missing.empty()) return {};
  if (names.empty() && missing.size() == 1 && !seen[0]) {
    return {
        fmt::format("{}: labels are from 1 to {}, and as they count from 0 there is a class 0 "
                    "without a sample",
                    where, seen.size() - 1)};
  }
  return {fmt::format("{}: expected a sample of each class, found none of {}", where,
                      listed(missing, kMostNamed))};
}

}  // namespace muster::data
