#pragma once

#include "common/documents/document.h"
#include "operator/local/job_directory.h"

namespace muster::cmd {

// Checks that checkpoint and model in the summary of a job that succeeded are there and whole: the
// job may have ended long ago, or been stopped after its last step. Throws Invalid naming each that
// is not.
void require_results(const local::JobDirectory& directory, const Json& summary);

}  // namespace muster::cmd
