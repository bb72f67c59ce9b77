#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

// Returns the nearest of `candidates` to `word` if it is near enough to be a typing error, else "".
// One with other digits than those of `word` is another thing, not a typing error.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// Returns "did you mean X?" for nearest(), else for the candidates that have `word` as a part, such
// as softmax of softmaxCrossEntropy ("did you mean X or Y?"), or "".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace muster
