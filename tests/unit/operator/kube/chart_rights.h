#pragma once

#include <functional>
#include <string>
#include <vector>

#include "operator/kube/http/transport.h"

namespace muster::kube {

// Whether the roles of these names in deploy/muster.yaml, which is made from the chart, let their
// subject do what a request asks for: the verb on the resource, and, as the admission plugin
// OwnerReferencesPermissionEnforcement has it, `update` of the finalizers of an owner whose
// deletion a new object blocks.
std::function<bool(const Request&)> chart_rights(const std::vector<std::string>& roles);

}  // namespace muster::kube
