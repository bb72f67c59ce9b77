#include "common/text/nearest.h"

#include <algorithm>
#include <cctype>
#include <iterator>

namespace muster {

namespace {

constexpr size_t kLongestWord = 64;

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

// Counts insertions, deletions, substitutions and swaps of neighbours (optimal string alignment).
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, substitute});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

std::string digits_of(std::string_view text) {
  std::string digits;
  std::ranges::copy_if(text, std::back_inserter(digits),
                       [](unsigned char c) { return std::isdigit(c); });
  return digits;
}

// Whether the two names differ in their numbers: mobilenet-v2 is not a typing error of
// mobilenet-v1.
bool means_another(std::string_view word, std::string_view candidate) {
  const std::string digits = digits_of(word);
  return !digits.empty() && digits != digits_of(candidate);
}

// Whether `candidate` contains `word` at its beginning or at the beginning of one of its words, as
// softmaxCrossEntropy contains crossEntropy, and mnist-sigmoid contains sigmoid.
bool has_part(const std::string& candidate, const std::string& word) {
  const std::string text = lower(candidate);
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const auto is = [&](size_t i, int (*kind)(int)) {
      return kind(static_cast<unsigned char>(candidate[i])) != 0;
    };
    if (at == 0 || is(at, std::isupper) || !is(at - 1, std::isalnum)) return true;
  }
  return false;
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.empty() || word.size() > kLongestWord) return "";
  const std::string wanted = lower(word);
  std::string best;
  size_t best_distance = kLongestWord;
  for (const std::string& candidate : candidates) {
    if (candidate.empty() || candidate.size() > kLongestWord) continue;
    if (means_another(word, candidate)) continue;
    const size_t distance = edit_distance(wanted, lower(candidate));
    const size_t longest = std::max(wanted.size(), candidate.size());
    if (distance > std::max<size_t>(1, longest / 3) || distance >= longest) continue;
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr size_t kShortestPart = 3;
  constexpr size_t kMostNamed = 3;
  std::vector<std::string> likely;
  if (const std::string near = nearest(word, candidates); !near.empty()) {
    likely = {near};
  } else if (word.size() >= kShortestPart && word.size() <= kLongestWord) {
    std::copy_if(candidates.begin(), candidates.end(), std::back_inserter(likely),
                 [&](const std::string& candidate) { return has_part(candidate, lower(word)); });
  }
  if (likely.empty() || likely.size() > kMostNamed) return "";
  std::string text;
  for (size_t i = 0; i < likely.size(); ++i) {
    if (i > 0) text += i + 1 < likely.size() ? ", " : " or ";
    text += likely[i];
  }
  return "did you mean " + text + "?";
}

}  // namespace muster
