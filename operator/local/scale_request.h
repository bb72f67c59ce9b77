#pragma once

#include <optional>

#include "operator/local/job_directory.h"

namespace muster::local {

// How `muster scale` asks the `muster run` of a directory for another number of workers: by
// scale.json, which is there until the run has taken it. That the job has been scaled shows in
// job.json (JobState::workers).

// Replaces a request that is there. Throws WriteError.
void request_scale(const JobDirectory& directory, int workers);

// Takes away what request there is, if any.
void drop_scale_request(const JobDirectory& directory);

// The workers that are asked for, if any are, taking the request away. What is no request is taken
// away too.
std::optional<int> take_scale_request(const JobDirectory& directory);

}  // namespace muster::local
