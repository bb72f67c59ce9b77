#pragma once

#include <filesystem>

#include "common/documents/document.h"

namespace muster {

// These functions read the results of a training from the files in the job's folder
// (docs/architecture.md). None of them throws: a file that cannot be read counts as absent.

// Returns the evaluation (evaluations/<step>.json) of the weights that the training of `result`
// (result.json) has exported; null if there is none.
Json evaluation_of(const std::filesystem::path& folder, const Json& result);

// Returns the content of result.json with absolute paths, "exportedStep", and "validation" and
// "test" of the final evaluation if there is one, without its values for single classes. "best"
// comes from the evaluation if that has found a better one. "notFinite" names the metrics that are
// not finite numbers, for example "validationLoss", if there are any. Null without a result.json.
Json read_results(const std::filesystem::path& folder);

// Returns the results that an evaluator knows: "exportedStep", "validation", "test", "best" and
// "notFinite" of the final evaluation that was written last; null if there is none. An evaluator
// may end before the leader has written result.json, so this function does not read that file.
Json read_final_evaluation(const std::filesystem::path& folder);

}  // namespace muster
