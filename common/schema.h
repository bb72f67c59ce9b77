#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/document.h"

namespace muster {

// One thing wrong with a document, for `muster validate` and for every reader of a manifest.
struct Problem {
  std::string path;      // "spec.training.layers[2].dense.units"
  std::string where;     // "job.yaml:12"
  std::string expected;  // "an integer of at least 1", "one of sync, async, boundedStaleness"
  std::string found;     // "\"many\" (a string)"
  std::string hint;      // "did you mean learningRate?", or empty

  // "job.yaml:12: spec.training.batchSize: expected an integer of at least 1, found "many" (a string)"
  std::string text() const;
};

// Checks `document` (the value at `path`, "" for the whole) against a structural OpenAPI v3 schema, the
// subset Kubernetes allows in a CRD: type, properties, required, additionalProperties, items, enum,
// bounds, lengths, pattern, min/maxProperties, nullable, x-kubernetes-preserve-unknown-fields,
// x-kubernetes-int-or-string. Unknown fields are problems, with the nearest known name as hint.
// Fills in `default`s in place, as the API server does. Reports every problem, not the first.
// Precondition: the schema itself is well-formed (a test checks ours).
std::vector<Problem> apply_schema(const Json& schema, Document& document,
                                  const std::string& path = "");

// The nearest of `candidates` to `word` if it is near enough to be a slip of the keyboard, else "".
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// Throws Invalid with every problem, a line each, if there are any.
void require_no_problems(const std::vector<Problem>& problems, int exit_code);

}  // namespace muster
