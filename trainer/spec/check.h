#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/documents/problems.h"
#include "trainer/spec/training_spec.h"

namespace muster::spec {

// A function that returns the facts of a source's files; `part` is train, validation or test. The
// function returns nothing if the files are not on this machine. It is not called for synthetic
// sources, which the manifest describes completely.
using LookUp =
    std::function<std::optional<DataFacts>(const std::string& part, const DataSource& source)>;

// Checks what the schema cannot express: exactly one of epochs and steps, names that layers refer
// to, piecewise lengths, fields of another optimizer, features of the API that this build does not
// have. It also checks everything that is known about data and model before anything runs: shapes
// that do not fit (by building the trainer's graph), labels without an output of the model,
// selections beyond the data. `path` is the place of the block in the document ("spec.training" or
// ""). The schema must have been applied, and its findings must be in `problems`: errors that only
// follow from these findings are not reported.
void check_training(const Document& document, const std::string& path, Problems& problems,
                    const LookUp& look_up = {});

// Validates a document that is a training block alone: schema, defaults, and checks. Returns every
// problem, by line.
std::vector<Problem> validate_training(Document& document, const LookUp& look_up = {});

// Returns notes on settings that are possible but almost certainly not intended; a line each, as
// Problem::text(). Precondition: no problems.
std::vector<std::string> training_notes(const Document& document, const std::string& path,
                                        const LookUp& look_up = {});

// Returns a note on the working memory of a step if it is 100 MB or more. Returns "" for less
// memory, and if the model depends on data that are not on this machine. Precondition: no problems.
std::string note_of_memory(const Document& document, const std::string& path,
                           const LookUp& look_up = {});

// Returns the model as the trainer builds it, with the values that the training data decide;
// nothing if these values are not known. Precondition: `path` has a `training` block without
// problems.
std::optional<compute::ModelSpec> model_on_data(const Document& document, const std::string& path,
                                                const LookUp& look_up);

// Loads a training.yaml and fills in its defaults; throws Invalid (kBadConfig) with every problem.
Document load_training(const std::filesystem::path& path);

}  // namespace muster::spec
