#pragma once

#include <string>
#include <vector>

#include "common/documents/problems.h"
#include "operator/api/rule_checks.h"

namespace muster::api {

// A rule states a condition on a TrainingJob that a schema cannot express and CEL can. The rules
// stand in trainingjob.schema.yaml, each at the object that it is about.
struct Rule {
  std::string path;      // of the object it is about: "spec.replicaSpecs"
  std::string cel;       // true where all is well; `self` is that object
  std::string blame;     // the field below `path` that a problem names, or ""
  std::string expected;  // in words
  // The check of rule_checks.h for `cel`. Null for a rule about changes (oldSelf), which a manifest
  // alone cannot break.
  RuleCheck found;
  // The fields below `path` that `found` reads; "x.*" for x and all within. If one of them has a
  // problem, that problem is the mistake, and a violation of the rule would only follow from it.
  std::vector<std::string> reads;
};
const std::vector<Rule>& rules();

// Adds a problem for each of rules() that `document` breaks, but none that only follows from a
// problem that is already there.
void check_rules(const Document& document, Problems& problems);

}  // namespace muster::api
