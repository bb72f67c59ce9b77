#pragma once

#include <cstdint>

#include "common/document.h"

namespace muster::api {

// What status.progress takes of a replica's answer to /progress: the fields that the schema has,
// where they are as it says and their numbers between -2^63 and 2^63. The rest, and all of what is
// no object, is left out: an image of a user's own may answer anything, and must not make a status
// that the API server refuses, or gives back as a number that not everybody can read. Null
// where nothing is left. Members come sorted by name, as the API server gives them back: a status
// that was written and one that was read are then the same.
Json progress_of(const Json& answer);

// The number of steps in status.progress that this job itself has made: stepsHere, or where the
// replica does not say it, step.
int64_t steps_taken(const Json& progress);

// The part of a replica's results (common/results.h) that status.results takes, chosen in the same
// way. Members that are null are left out, and numbers that are not integers have six digits.
Json results_of(const Json& said);

}  // namespace muster::api
