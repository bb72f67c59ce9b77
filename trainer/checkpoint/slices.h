#pragma once

#include <string>
#include <vector>

#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/safetensors.h"

namespace muster::checkpoint {

// The slices a file's own __metadata__ records, as write_safetensors() put them there. Throws
// Invalid naming file and tensor where one is malformed.
std::vector<Slice> slices_of(const SafetensorsHeader& header, const std::string& file_name);

}  // namespace muster::checkpoint
