#pragma once

#include <vector>

#include "operator/api/training_job.h"
#include "trainer/spec/check.h"

namespace muster::api {

// Schema + defaults (in place) + the rules a schema cannot say, the same that the CRD states in
// CEL. Every problem at once.
std::vector<Problem> validate(Document& document);

// validate() also looks at the data files that are on this machine. `muster`
// calls this one, because it starts the job here.
std::vector<Problem> validate(Document& document, const spec::LookUp& look_up);

// validate() with what only a cluster asks for: replicas that train together
// share a volume. `muster run` gives them its directory.
std::vector<Problem> validate_for_cluster(Document& document);

// Load a manifest, apply `--set path=value`s, validate, convert. Throws Invalid with every problem.
TrainingJob load_training_job(Document& document);

}  // namespace muster::api
