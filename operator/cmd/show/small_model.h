#pragma once

#include <filesystem>
#include <string>

#include "common/documents/document.h"

namespace muster::cmd {

// Returns the parameters of an exported model with at most kFew of them, few enough to read, by
// tensor: {"linear/bias": [10.0], "linear/kernel": [2.0]}, in C order. Null for a larger model, and
// if the file does not exist, is damaged or cannot be read.
inline constexpr size_t kFew = 16;
Json few_parameters(const std::filesystem::path& model);

// Returns "linear/bias 10.0012, linear/kernel 1.99965"; several numbers of a tensor as "[1, 2]".
std::string parameters_text(const Json& parameters);

}  // namespace muster::cmd
