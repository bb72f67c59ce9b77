#pragma once

#include "common/documents/document.h"

namespace muster::spec {

// The schema of the `training` block as JSON.
const Json& training_schema();

}  // namespace muster::spec
