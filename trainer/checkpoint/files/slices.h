#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/checkpoint/files/manifest.h"
#include "trainer/checkpoint/files/safetensors.h"

namespace muster::checkpoint {

// Returns the slices in a file's __metadata__, in the form of write_safetensors(). Throws Invalid
// naming file and tensor if one is malformed.
std::vector<Slice> slices_of(const SafetensorsHeader& header, const std::string& file_name);

// Returns the slices of one file by their tensors. They point into `slices`.
std::map<std::string_view, const Slice*> slices_by_tensor(const std::vector<Slice>& slices,
                                                          std::string_view file_name);

// Returns the number of rows of a tensor (compute::row_floats says what a row is); 0 if its
// elements cannot be counted.
int64_t rows_of(const std::vector<int64_t>& shape);

// Returns the shape, in a file, of `rows` rows of a tensor of this shape.
std::vector<int64_t> slice_shape(const std::vector<int64_t>& shape, int64_t rows);

}  // namespace muster::checkpoint
