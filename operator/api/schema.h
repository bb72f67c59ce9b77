#pragma once

#include "common/document.h"

namespace muster::api {

// The whole schema as JSON (spec, status, with `training` spliced in): CRD and docs come from it.
const Json& training_job_schema();

}  // namespace muster::api
