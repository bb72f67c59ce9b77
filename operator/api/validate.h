#pragma once

#include <vector>

#include "operator/api/training_job.h"
#include "trainer/spec/check.h"

namespace muster::api {

// validate() of training_job.h, that also looks at what of the data is here: for `muster`, which
// starts the job on this machine.
std::vector<Problem> validate(Document& document, const spec::LookUp& look_up);

// validate() of training_job.h, and what only a cluster asks for: that replicas which train
// together share a volume. `muster run` gives them its directory.
std::vector<Problem> validate_for_cluster(Document& document);

}  // namespace muster::api
