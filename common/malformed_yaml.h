#pragma once

#include <string>
#include <string_view>

namespace muster {

// A YAML parser's complaint: what it expected and what it found.
struct Complaint {
  std::string expected;
  std::string found;
};

// Translates a message of yaml-cpp about byte `at` of `text` into words for people who write
// manifests. Where a bracket is missing, the parser only reports the place where it noticed this;
// the words say where the unclosed part begins.
Complaint in_plain_words(std::string_view message, std::string_view text, size_t at);

}  // namespace muster
