#pragma once

#include "common/documents/document.h"

namespace muster::api {

// Returns the whole schema as JSON (spec, status, with the schema of `training` inserted). The CRD
// and the docs are made from it.
const Json& training_job_schema();

}  // namespace muster::api
