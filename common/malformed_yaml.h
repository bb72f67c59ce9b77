#pragma once

#include <string>
#include <string_view>

namespace muster {

// What a YAML parser complains of, as expected and found.
struct Complaint {
  std::string expected;
  std::string found;
};

// A message of yaml-cpp about place `at` (a byte of it) of `text` in words for people who write
// manifests. Where a bracket is missing, the parser stands where it noticed: the words say where
// what is not closed begins.
Complaint in_plain_words(std::string_view message, std::string_view text, size_t at);

}  // namespace muster
