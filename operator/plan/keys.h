#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Chooses the name of the key pair by which the job's replicas will know each other: a new one for
// a job with `training` and several replicas that has none, and after a restart of the whole job,
// but not after a suspension. Replicas that live keep what they were created with: a job that ran
// in plaintext before this operator goes on so.
void choose_keys(Draft& draft);

}  // namespace muster::plan
