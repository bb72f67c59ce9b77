#pragma once

#include <cstdint>

#include "common/documents/document.h"

namespace muster::api {

// Returns the part of a replica's answer to /progress that status.progress takes: the fields that
// the schema has, if they match it and their numbers lie between -2^63 and 2^63. The rest is left
// out, and so is an answer that is no object: a user's own image may answer anything, and must not
// make a status that the API server refuses, or returns with a number that not every reader can
// parse. Returns null if nothing is left. Members are sorted by name, as the API server returns
// them: a status that was written and one that was read are then equal.
Json progress_of(const Json& answer);

// The number of steps in status.progress that this job itself has made: stepsHere, or where the
// replica does not say it, step.
int64_t steps_taken(const Json& progress);

// The part of a replica's results (common/job/results.h) that status.results takes, chosen in the
// same way. Members that are null are left out, and numbers that are not integers have six digits.
Json results_of(const Json& said);

}  // namespace muster::api
