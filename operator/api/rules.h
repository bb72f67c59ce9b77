#pragma once

#include <string>
#include <vector>

#include "common/documents/problems.h"
#include "operator/api/rule_checks.h"

namespace muster::api {

// A rule states a condition on a TrainingJob that a schema cannot express and CEL can. The rules
// are in trainingjob.schema.yaml, each at the object that it checks.
struct Rule {
  std::string path;      // the path of the object that the rule checks: "spec.replicaSpecs"
  std::string cel;       // true if the object is valid; `self` is the object at `path`
  std::string blame;     // the field below `path` that a problem names, or ""
  std::string expected;  // what the rule expects, in words
  // The check of rule_checks.h for `cel`. Null for a rule about changes (oldSelf), which a manifest
  // alone cannot break.
  RuleCheck found;
  // The fields below `path` that `found` reads; "x.*" for x and all fields in it. If one of these
  // fields has a problem, the rule is not checked: a violation would only follow from that problem.
  std::vector<std::string> reads;
};
const std::vector<Rule>& rules();

// Adds a problem for each of rules() that `document` breaks, except where the violation only
// follows from a problem that is already in `problems`.
void check_rules(const Document& document, Problems& problems);

}  // namespace muster::api
