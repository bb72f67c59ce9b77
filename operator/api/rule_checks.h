#pragma once

#include <string>

#include "common/document.h"

namespace muster::api {

// A check looks for what breaks a rule: `self` is the object at the rule's path, which may have
// failed its schema. It returns "" where all is well, else what was found.
using RuleCheck = std::string (*)(const Json& self);

// The check that a rule in trainingjob.schema.yaml names. Throws std::out_of_range for a name that
// there is not.
RuleCheck rule_check(const std::string& name);

}  // namespace muster::api
