#pragma once

#include "common/documents/document.h"
#include "operator/local/job_directory.h"

namespace muster::cmd {

// Checks that the checkpoint and the model named in the summary of a succeeded job exist and are
// whole: the job may have ended long ago, or may have been stopped after its last step. Throws
// Invalid, naming each that is missing or damaged.
void require_results(const local::JobDirectory& directory, const Json& summary);

}  // namespace muster::cmd
