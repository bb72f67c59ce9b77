#pragma once

#include "common/documents/document.h"

namespace muster::kube {

// Merges a user's PodTemplateSpec (or a part of one) over defaults, as Kubernetes merges patches of
// pods: objects field by field; lists of containers by name, and then field by field; volumes,
// variables, ports and mounts by their identifying field, as whole entries; every other list, and
// every value of several possible kinds (a probe, a hook), as a whole. null removes a default. The
// lists of tolerations are joined, except defaults for a taint that one of the user's tolerations
// also covers.
Json merge_template(Json defaults, const Json& users);

}  // namespace muster::kube
