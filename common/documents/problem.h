#pragma once

#include <string>
#include <vector>

#include "common/documents/document.h"

namespace muster {

// One thing that is wrong with a document, for `muster validate` and for every reader of a
// manifest.
struct Problem {
  std::string path;      // "spec.training.layers[2].dense.units"
  std::string where;     // "job.yaml:12"
  std::string expected;  // "an integer of at least 1", "one of sync, async, boundedStaleness"
  std::string found;     // "\"many\" (a string)"
  std::string hint;      // "did you mean learningRate?", or empty
  int line = 0;          // line of `where`; 0: none, for example for values of --set
  bool unknown_field = false;
  std::string meant = {};  // for an unknown field: the path that was probably meant, or empty
  std::string path_in_text = {};  // the path in the text, if it differs from `path`; else empty

  const std::string& shown_path() const { return path_in_text.empty() ? path : path_in_text; }

  // "job.yaml:12: spec.training.batchSize: expected an integer of at least 1, found "many" (a
  // string)"
  std::string text() const;
};

// Makes a problem at `path` of `document`, for checks beyond a schema; `found` describes the value
// there.
Problem make_problem(const Document& document, const std::string& path, std::string expected,
                     std::string found, std::string hint = "");

// Describes a value as Problem::found shows it: `"many" (a string)`, `12 (an integer)`, `a list of
// 2 entries`.
std::string describe(const Json& value);

// Joins the words: "a, b, c".
std::string join(const std::vector<std::string>& words);

// Throws Invalid with every problem, one per line, if there are any.
void require_no_problems(const std::vector<Problem>& problems, int exit_code);

}  // namespace muster
