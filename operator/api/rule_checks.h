#pragma once

#include <string>

#include "common/documents/document.h"

namespace muster::api {

// A check looks for a violation of a rule: `self` is the object at the rule's path, which may have
// failed its schema. It returns "" if the rule holds, else what was found.
using RuleCheck = std::string (*)(const Json& self);

// Returns the check that a rule in trainingjob.schema.yaml names. Throws std::out_of_range for an
// unknown name.
RuleCheck rule_check(const std::string& name);

}  // namespace muster::api
