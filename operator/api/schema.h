#pragma once

#include "common/documents/document.h"

namespace muster::api {

// Returns the whole schema as JSON (spec, status, with `training` spliced in): CRD and docs are
// made from it.
const Json& training_job_schema();

}  // namespace muster::api
