#pragma once

#include <string>

#include "operator/cmd/job/job_source.h"

namespace muster::cmd {

// Checks the file that a manifest's initializeFrom names (relative to `folder`), and whether it
// fits the model. Returns a sentence that says which tensors of the model begin with values of the
// file, or "" if all do. The sentence also names tensors that are frozen with random numbers, even
// without initializeFrom. Throws Invalid, naming field, line and file, if the file does not exist,
// is not whole or does not fit; Unavailable if the file cannot be read now. Takes as long as
// reading the file. Precondition: the manifest has no problems. `look_up` finds the manifest's
// data, which decide the model.
std::string look_at_initial_weights(const Document& document, const std::filesystem::path& folder,
                                    const spec::LookUp& look_up);

// Calls look_at_initial_weights() for a job that would begin at step 0, before anything is started.
// Checks nothing if no muster-trainer on this machine reads the file: what a user's own command
// does is not known.
std::string check_initial_weights(const JobSource& source);

}  // namespace muster::cmd
