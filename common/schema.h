#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/document.h"

namespace muster {

// One thing wrong with a document, for `muster validate` and for every reader of a manifest.
struct Problem {
  std::string path;        // "spec.training.layers[2].dense.units"
  std::string where;       // "job.yaml:12"
  std::string expected;    // "an integer of at least 1", "one of sync, async, boundedStaleness"
  std::string found;       // "\"many\" (a string)"
  std::string hint;        // "did you mean learningRate?", or empty
  int line = 0;            // of `where`; 0: none, as for what --set brought
  std::string meant = {};  // of an unknown field: the path it was probably meant as, or empty

  // "job.yaml:12: spec.training.batchSize: expected an integer of at least 1, found "many" (a
  // string)"
  std::string text() const;
};

// Checks `document` (the value at `path`, "" for the whole) against a structural OpenAPI v3 schema,
// the subset Kubernetes allows in a CRD: type, properties, required, additionalProperties, items,
// enum, bounds, lengths, pattern (RE2, unanchored), min/maxProperties, nullable,
// x-kubernetes-preserve-unknown-fields, x-kubernetes-int-or-string; and `format: float`: a number
// must keep its bounds once it is rounded to a float32. Unknown fields are problems, with the
// nearest known name as hint, and that name is not reported as missing. Fills in `default`s in
// place, as the API server does: also for a null where none is allowed. Other nulls that are not
// `nullable` are problems; an integral number such as 5.0 becomes an integer where the schema asks
// for one. Reports every problem, not the first, up to kMaxProblems. Nothing at `path`: nothing to
// check. Precondition: the schema itself is well-formed (a test checks ours).
inline constexpr size_t kMaxProblems = 100;
std::vector<Problem> apply_schema(const Json& schema, Document& document,
                                  const std::string& path = "");

// A problem at `path` of `document`, for checks beyond a schema; `found` describes the value there.
Problem make_problem(const Document& document, const std::string& path, std::string expected,
                     std::string found, std::string hint = "");

// A value as Problem::found shows it: `"many" (a string)`, `12 (an integer)`, `a list of 2
// entries`.
std::string describe(const Json& value);

// The nearest of `candidates` to `word` if it is near enough to be a slip of the keyboard, else "".
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// "did you mean X?" for nearest(), else for the candidates that have `word` as a part, such as
// softmax of softmaxCrossEntropy ("did you mean X or Y?"), or "".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

// "a, b, c".
std::string join(const std::vector<std::string>& words);

// Throws Invalid with every problem, a line each, if there are any.
void require_no_problems(const std::vector<Problem>& problems, int exit_code);

}  // namespace muster
