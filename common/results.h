#pragma once

#include <filesystem>

#include "common/document.h"

namespace muster {

// What a training has come to, by the files that it leaves in the job's folder
// (docs/architecture.md). Nothing here throws: a file that cannot be read is as good as absent.

// evaluations/<step>.json of the weights that the training of `result` (result.json) has exported;
// null if there is none.
Json evaluation_of(const std::filesystem::path& folder, const Json& result);

// result.json, with "exportedStep", with its paths as absolute ones, and with
// "validation" and "test" of the final evaluation where it is there; null without a result.json.
Json read_results(const std::filesystem::path& folder);

// What an evaluator has to say of its job's end: "exportedStep", "validation" and "test" of the
// final evaluation that was written last; null where there is none. It may have ended before the
// leader wrote result.json.
Json read_final_evaluation(const std::filesystem::path& folder);

}  // namespace muster
