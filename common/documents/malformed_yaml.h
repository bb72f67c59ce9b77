#pragma once

#include <string>
#include <string_view>

namespace muster {

// A YAML parser's complaint: what it expected and what it found.
struct Complaint {
  std::string expected;
  std::string found;
};

// The message for a list or an object as a key, of which yaml-cpp has none.
inline constexpr std::string_view kListAsKey = "list as key";

// Translates a message of yaml-cpp about byte `at` of `text` into words for people who write
// manifests. If a bracket is missing, the parser only reports the place where it noticed the
// mistake; this function's words say where the unclosed part begins.
Complaint in_plain_words(std::string_view message, std::string_view text, size_t at);

// Returns whether the quoted text that begins at byte `at` of `text` has no closing quote. The
// parser takes such a text as if it ended with the last line.
bool is_unclosed_quote(std::string_view text, size_t at);

// Returns the line, from 1, of the first bracket that opens more than `most` lists and objects; 0
// if there is none. Recognizes quotes and comments, but takes brackets in a block of text for real
// ones.
int line_of_excess_bracket(std::string_view text, size_t most);

}  // namespace muster
