#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

// Returns the candidate nearest to `word` if `word` may be a typing error of it, else "". A
// candidate with other digits than `word` means something else, so it is not returned.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// Returns "did you mean X?" for nearest(), else "did you mean X or Y?" for the candidates that
// contain `word` (softmaxCrossEntropy contains softmax), or "".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace muster
