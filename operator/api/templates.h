#pragma once

#include <string>

#include "common/problems.h"

namespace muster::api {

// Adds what is wrong in the pod templates of a TrainingJob; what only follows from problems that
// are there is left out.
void check_templates(const Document& document, Problems& problems);

// TF_CONFIG and MUSTER_*, which Muster sets.
bool is_reserved(const std::string& variable);

// The container that counts (named trainer, else tensorflow, else the only one) of a
// PodTemplateSpec, or null.
const Json& counting_container(const Json& pod_template);

}  // namespace muster::api
