#pragma once

#include <cstdint>
#include <string>

#include "trainer/spec/selection.h"

namespace muster::data {

using spec::Selected;
using spec::Selection;

// Calls spec::select for `samples` samples of `name`. Throws Invalid, naming the field, what was
// expected and what was found, if the selection is beyond the end or selects nothing.
Selected select(const Selection& selection, uint64_t samples, const std::string& name);

}  // namespace muster::data
