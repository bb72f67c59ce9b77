#pragma once

#include <cstdint>

#include "common/documents/document.h"

namespace muster::api {

// Returns the part of a replica's answer to /progress that status.progress takes: the fields that
// the schema has, if they match it and their numbers lie between -2^63 and 2^63. Everything else is
// left out, and so is an answer that is not an object: a user's own image may answer anything, and
// its answer must not make the API server refuse the status or return a number that some readers
// cannot parse. Returns null if nothing is left. Members are sorted by name, as the API server
// returns them, so that the status that was written equals the status that is read.
Json progress_of(const Json& answer);

// Returns the number of steps that this job itself has made: stepsHere of status.progress or, if
// the replica does not report it, step.
int64_t steps_taken(const Json& progress);

// Returns the part of a replica's results (common/job/results.h) that status.results takes, chosen
// as in progress_of(). Members that are null are left out, and numbers that are not integers have
// six digits.
Json results_of(const Json& said);

}  // namespace muster::api
