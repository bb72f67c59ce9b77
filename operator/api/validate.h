#pragma once

#include <vector>

#include "operator/api/training_job.h"
#include "trainer/spec/check.h"

namespace muster::api {

// Checks the schema, fills in defaults (in place), and checks the rules that a schema cannot
// express, which the CRD states in CEL. Returns every problem at once.
std::vector<Problem> validate(Document& document);

// Does the same, and also checks the data files that are on this machine. `muster` calls this
// function, because it starts the job on this machine.
std::vector<Problem> validate(Document& document, const spec::LookUp& look_up);

// Does the same as validate(document), and also checks what only a cluster requires: replicas that
// train together must share a volume. `muster run` gives the replicas its directory instead.
std::vector<Problem> validate_for_cluster(Document& document);

// Validates a manifest and converts it. Throws Invalid with every problem.
TrainingJob load_training_job(Document& document);

}  // namespace muster::api
