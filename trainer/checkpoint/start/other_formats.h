#pragma once

#include <filesystem>
#include <string>

namespace muster::checkpoint {

// Says of a file that is named as weights of another program are ("model.h5"), in a format that is
// not read, what it is and how it becomes a safetensors file; "" for any other name.
std::string other_format(const std::filesystem::path& file);

}  // namespace muster::checkpoint
