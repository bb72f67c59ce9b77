#pragma once

#include <string>
#include <vector>

#include "common/documents/document.h"

namespace muster::api {

// Returns a line for each setting of a valid TrainingJob that is probably a mistake:
// template_notes(), a replica that asks for more or fewer GPUs than it uses, and settings of
// `training` that have no effect on the job's replicas. spec::training_notes() returns the notes on
// `training` alone.
std::vector<std::string> job_notes(const Document& document);

}  // namespace muster::api
