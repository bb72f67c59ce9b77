#pragma once

#include <optional>

#include "operator/local/job_directory.h"

namespace muster::local {

// `muster scale` asks the `muster run` of a directory for another number of workers through
// scale.json, which exists until the run has taken it. job.json shows that the job has been scaled
// (JobState::workers).

// Writes a request, in place of an earlier one. Throws WriteError.
void request_scale(const JobDirectory& directory, int workers);

// Removes the request, if there is one.
void drop_scale_request(const JobDirectory& directory);

// Returns the requested number of workers, if there is a request, and removes the request. A file
// with any other content is removed too.
std::optional<int> take_scale_request(const JobDirectory& directory);

}  // namespace muster::local
