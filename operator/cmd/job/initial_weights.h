#pragma once

#include <string>

#include "operator/cmd/job/job_source.h"

namespace muster::cmd {

// Looks at the file that a manifest's initializeFrom names, from `folder`, and at how it fits the
// model. Returns a sentence on which tensors of the model begin with it, or "" if it is all of
// them. The sentence names the tensors that are frozen with random numbers, also without
// initializeFrom. Throws Invalid naming field, line and file if it is not there, not whole, or does
// not fit; Unavailable if it cannot be read now. Takes as long as reading the file. Precondition:
// the manifest has no problems. `look_up` finds its data, which decide the model.
std::string look_at_initial_weights(const Document& document, const std::filesystem::path& folder,
                                    const spec::LookUp& look_up);

// Does this for a job that would begin at step 0, before anything is started. Checks nothing if no
// muster-trainer here reads the file: what a user's own command does is not known.
std::string check_initial_weights(const JobSource& source);

}  // namespace muster::cmd
