#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/problems.h"
#include "trainer/spec/training_spec.h"

namespace muster::spec {

// What a check may ask of a source's files: `part` is train, validation or test. Nothing where they
// are not here. Not asked of synthetic sources, which the manifest says all of.
using LookUp =
    std::function<std::optional<DataFacts>(const std::string& part, const DataSource& source)>;

// What the schema cannot say: exactly one of epochs and steps, names that layers refer to,
// piecewise lengths, fields another optimizer has, what is in the API but not available in this
// build; and all that can be known of data and model together before anything runs: shapes that do
// not fit, by the graph the trainer builds, labels the model has no output for, selections beyond
// the data. `path` is where the block stands in the document ("spec.training" or ""). The schema
// must have been applied, and what it found be in `problems`: what follows from that is not
// reported.
void check_training(const Document& document, const std::string& path, Problems& problems,
                    const LookUp& look_up = {});

// Of a training block that is a document of its own: schema, defaults in place, and checks. Every
// problem, by line.
std::vector<Problem> validate_training(Document& document, const LookUp& look_up = {});

// What is as good as certainly not meant, though it can be done; a line each, as Problem::text().
// Precondition: no problems.
std::vector<std::string> training_notes(const Document& document, const std::string& path,
                                        const LookUp& look_up = {});

// The model as the trainer builds it, with what its training data decide; nothing where they are
// not known. Precondition: there is a training at `path`, without problems.
std::optional<compute::ModelSpec> model_on_data(const Document& document, const std::string& path,
                                                const LookUp& look_up);

// Loads a training.yaml and fills in its defaults; throws Invalid (kBadConfig) with every problem.
Document load_training(const std::filesystem::path& path);

}  // namespace muster::spec
