#pragma once

#include <string>

#include "operator/kube/api/client.h"

namespace muster::kube {

// The annotation of the CustomResourceDefinition with the version of Muster that it is of.
inline constexpr const char* kVersionAnnotation = "muster.dev/version";

// Returns the version of Muster that the CustomResourceDefinition of TrainingJob is of; "" for a
// definition without the annotation, and where nobody can tell: the operator may have no right to
// look. Throws nothing.
std::string definition_version(const Client& client);

}  // namespace muster::kube
