#pragma once

#include <string>

#include "common/documents/problems.h"
#include "trainer/compute/models/model_spec.h"

namespace muster::spec {

// Checks of the manifest's patterns (common/text/pattern.h). `path` is the place of the text or of
// the list in the document. Texts in which `problems` has something already are passed over.

// Reports a text that is no regular expression.
void check_pattern(const std::string& path, const Json& text, Problems& problems);
// Reports each text that is no regular expression.
void check_patterns(const std::string& path, const Json& list, Problems& problems);
// Reports each `from` that is no regular expression, and each `to` that cannot replace what it
// matches.
void check_renames(const std::string& path, const Json& list, Problems& problems);
// Reports each pattern that matches no layer with parameters, and a list that leaves no such layer
// to be trained. `model` is the model with the layers frozen. Precondition: all are patterns.
void check_frozen(const std::string& path, const Json& list, const compute::ModelSpec& model,
                  Problems& problems);

}  // namespace muster::spec
