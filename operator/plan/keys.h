#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Chooses the name of the key pair by which the job's replicas identify each other. A job with
// `training` and several replicas gets a new name if it has none, and after a restart of the whole
// job, but not after a suspension. Living replicas keep the key pair that they were created with: a
// job that an older operator started in plaintext stays in plaintext.
void choose_keys(Draft& draft);

}  // namespace muster::plan
