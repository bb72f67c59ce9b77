#pragma once

#include "common/document.h"

namespace muster::kube {

// A user's PodTemplateSpec (or a part of one) over defaults, as Kubernetes merges patches of pods:
// objects field by field; lists of containers by name, and then field by field; volumes, variables,
// ports and mounts by what names them, whole entries; every other list, and whatever is one of
// several kinds (a probe, a hook), whole. null takes a default away. Tolerations are joined,
// without the defaults for a taint that the user's tolerate in another way.
Json merge_template(Json defaults, const Json& users);

}  // namespace muster::kube
