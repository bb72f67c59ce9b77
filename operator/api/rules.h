#pragma once

#include <string>
#include <vector>

#include "common/problems.h"

namespace muster::api {

// What a schema cannot say about a TrainingJob and CEL can: one table for `muster validate` and for
// the CRD's x-kubernetes-validations. A rule sits on the object that still exists when a field of
// its is removed.
struct Rule {
  const char* path;      // of the object it is about: "spec.replicaSpecs"
  const char* cel;       // true where all is well; `self` is that object
  const char* blame;     // the field below `path` that a problem names, or ""
  const char* expected;  // in words
  // The same as `cel`: "" where all is well, else what was found. Null for a rule about changes
  // (oldSelf), which a manifest alone cannot break. Must take objects that failed their schema.
  std::string (*found)(const Json& self);
  // What `found` reads, from the root; "x.*" for x and all within. A problem there is the mistake,
  // and what the rule would say follows from it.
  std::vector<std::string> reads = {};
};
const std::vector<Rule>& rules();

// Add what `document` breaks of rules(), and in its templates; what only follows from problems that
// are there is left out.
void check_rules(const Document& document, Problems& problems);
void check_templates(const Document& document, Problems& problems);

// TF_CONFIG and MUSTER_*, which Muster sets.
bool is_reserved(const std::string& variable);

// The container that counts (named trainer, else tensorflow, else the only one) of a
// PodTemplateSpec, or null.
const Json& counting_container(const Json& pod_template);

}  // namespace muster::api
