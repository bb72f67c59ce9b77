#pragma once

#include <filesystem>
#include <string>

namespace muster::checkpoint {

// For a file whose name is that of weights in a format that Muster does not read ("model.h5"),
// returns what the file is and how to convert it to safetensors; "" for any other name.
std::string other_format(const std::filesystem::path& file);

}  // namespace muster::checkpoint
