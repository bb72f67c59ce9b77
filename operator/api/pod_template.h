#pragma once

#include <string>
#include <vector>

#include "common/documents/document.h"

namespace muster::api {

// The names of a container's fields.
const std::vector<std::string>& container_fields();

// Returns a line for each field in the pod templates of a TrainingJob that Kubernetes does not know
// or whose type it would refuse. The list of fields is that of the Kubernetes release that
// pod_template.schema.yaml was made from. These lines are not problems of the manifest, because
// another release may know more fields.
std::vector<std::string> template_notes(const Document& document);

}  // namespace muster::api
