#include "common/text/shell_word.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace muster {

std::string shell_word(const std::string& word) {
  constexpr std::string_view kTame = "-_./=:,@%+";
  const bool tame = !word.empty() && std::ranges::all_of(word, [&](unsigned char c) {
    return std::isalnum(c) || kTame.find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (tame) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace muster
