#pragma once

#include "trainer/spec/check.h"

namespace muster::spec {

// The part of check_training() that checks data and model together: selections, shapes, labels.
void check_fit(const Document& document, const std::string& path, Problems& problems,
               const LookUp& look_up);

}  // namespace muster::spec
