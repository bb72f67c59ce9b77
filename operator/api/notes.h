#pragma once

#include <string>
#include <vector>

#include "common/documents/document.h"

namespace muster::api {

// Returns a line for each thing in a valid TrainingJob that is probably not meant:
// template_notes(), a replica that asks for more GPUs than it uses, or for fewer, and settings of
// `training` that have no effect on the job's replicas. Notes on `training` by itself are
// spec::training_notes()'s.
std::vector<std::string> job_notes(const Document& document);

}  // namespace muster::api
