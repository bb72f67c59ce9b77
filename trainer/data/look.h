#pragma once

#include <optional>

#include "trainer/spec/check.h"

namespace muster::data {

// What an IDX source's files say of themselves: the header of the images, and all labels. Nothing
// where a file is not here or cannot be opened, or for a synthetic source; what is wrong with files
// that are here is in DataFacts::malformed. Reads no pixels.
std::optional<spec::DataFacts> look_at(const spec::DataSource& source);

}  // namespace muster::data
