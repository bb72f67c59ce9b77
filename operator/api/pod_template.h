#pragma once

#include <string>
#include <vector>

#include "common/documents/document.h"

namespace muster::api {

// The names of a container's fields.
const std::vector<std::string>& container_fields();

// Returns a line for each thing in the pod templates of a TrainingJob that Kubernetes does not know
// or would refuse: fields and their types, as the release has them that pod_template.schema.yaml
// was made from. These are no problems of the manifest: another release may know more.
std::vector<std::string> template_notes(const Document& document);

}  // namespace muster::api
