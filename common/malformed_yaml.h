#pragma once

#include <string>
#include <string_view>

namespace muster {

// What a YAML parser complains of, as expected and found.
struct Complaint {
  std::string expected;
  std::string found;
};

// A message of yaml-cpp about `line` in words for people who write manifests.
Complaint in_plain_words(std::string_view message, std::string_view line);

}  // namespace muster
