#pragma once

#include <string>

#include "operator/local/job_directory.h"

namespace muster::local {

// `muster checkpoint` asks rank 0 of the `muster run` of a directory for a checkpoint through the
// file checkpoint-request, which rank 0 watches (MUSTER_CHECKPOINT_REQUEST). Each new text is one
// request; status.progress shows which has been met.

// Writes a request, in place of an earlier one. Throws WriteError.
void request_checkpoint(const JobDirectory& directory, const std::string& request);

// Returns the newest request; "" if there is none. Throws as read_file does.
std::string requested_checkpoint(const JobDirectory& directory);

// Removes the request, if there is one.
void drop_checkpoint_request(const JobDirectory& directory);

}  // namespace muster::local
