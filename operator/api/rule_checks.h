#pragma once

#include <string>

#include "common/document.h"

namespace muster::api {

// What a rule finds in a manifest: `self` is the object at the rule's path, which may have failed
// its schema. Returns "" where all is well, else what was found.
using RuleCheck = std::string (*)(const Json& self);

// The check that a rule in trainingjob.schema.yaml names. Throws std::out_of_range for a name that
// there is not.
RuleCheck rule_check(const std::string& name);

}  // namespace muster::api
