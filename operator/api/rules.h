#pragma once

#include <string>
#include <vector>

#include "common/document.h"
#include "common/schema.h"

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
};
const std::vector<Rule>& rules();

// Problems of `document` by rules(), by the templates and by what is in the API but not available
// yet.
std::vector<Problem> check_rules(const Document& document);
std::vector<Problem> check_templates(const Document& document);
std::vector<Problem> check_available(const Document& document);

// The container that counts (named trainer, else tensorflow, else the only one) of a
// PodTemplateSpec, or null.
const Json& counting_container(const Json& pod_template);

}  // namespace muster::api
