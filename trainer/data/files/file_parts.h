#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/data/files/selection.h"

namespace muster::data {

// A range of consecutive samples of one file.
struct FilePart {
  size_t file = 0;
  uint64_t first = 0;  // number within the file
  uint64_t count = 0;  // at least 1
};

// Returns the selected samples, by file; `samples_of_files` has the number of samples in each file.
// Files without selected samples are left out. Throws Invalid like select(), with `name`.
std::vector<FilePart> selected_parts(const std::vector<uint64_t>& samples_of_files,
                                     const Selection& selection, const std::string& name);

}  // namespace muster::data
