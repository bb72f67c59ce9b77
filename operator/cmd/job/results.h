#pragma once

#include "common/document.h"
#include "operator/local/job_directory.h"

namespace muster::cmd {

// Whether checkpoint and model that the summary of a job that succeeded names are there and whole:
// it may have been long ago, or before a stop that came after its last step. Throws Invalid naming
// each that is not.
void require_results(const local::JobDirectory& directory, const Json& summary);

}  // namespace muster::cmd
