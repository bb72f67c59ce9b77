#pragma once

#include <vector>

#include "operator/api/training_job.h"
#include "trainer/spec/check.h"

namespace muster::api {

// validate() of training_job.h, that also looks at what of the data is here: for `muster`, which
// starts the job on this machine.
std::vector<Problem> validate(Document& document, const spec::LookUp& look_up);

}  // namespace muster::api
