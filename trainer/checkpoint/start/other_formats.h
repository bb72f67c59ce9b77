#pragma once

#include <filesystem>
#include <string>

namespace muster::checkpoint {

// For a file that is no safetensors file, returns what it is and how to get weights of it, to
// follow "found ". The first bytes decide, then the ending of the name. Returns "" for a file of no
// known kind, and for one that cannot be read.
std::string other_format(const std::filesystem::path& file);

}  // namespace muster::checkpoint
