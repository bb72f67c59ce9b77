#pragma once

#include <string>
#include <vector>

#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/safetensors.h"

namespace muster::checkpoint {

// Returns the slices that a file's own __metadata__ records, as write_safetensors() wrote them.
// Throws Invalid naming file and tensor if one is malformed.
std::vector<Slice> slices_of(const SafetensorsHeader& header, const std::string& file_name);

}  // namespace muster::checkpoint
