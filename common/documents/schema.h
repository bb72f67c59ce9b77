#pragma once

#include <string>
#include <vector>

#include "common/documents/document.h"
#include "common/documents/problem.h"

namespace muster {

// Checks `document` (the value at `path`, "" for the whole) against a structural OpenAPI v3 schema,
// the subset Kubernetes allows in a CRD: type, properties, required, additionalProperties, items,
// enum, bounds, lengths, pattern (RE2, unanchored), min/maxProperties, nullable,
// x-kubernetes-preserve-unknown-fields, x-kubernetes-int-or-string; and `format: float`: a number
// must keep its bounds once it is rounded to a float32. Unknown fields are problems, with the
// nearest known name as hint, and that name is not reported as missing. Fills in `default`s in
// place, as the API server does: also for a null in a field that is not `nullable`. Other nulls in
// such fields are problems; an integral number such as 5.0 becomes an integer where the schema asks
// for one. Reports every problem, not only the first, up to kMaxProblems. If `path` does not exist,
// nothing is checked. Precondition: the schema itself is well-formed (a test checks ours).
inline constexpr size_t kMaxProblems = 100;
std::vector<Problem> apply_schema(const Json& schema, Document& document,
                                  const std::string& path = "");

}  // namespace muster
