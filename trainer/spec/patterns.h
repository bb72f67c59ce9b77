#pragma once

#include <string>

#include "common/documents/problems.h"
#include "trainer/compute/models/model_spec.h"

namespace muster::spec {

// Checks of the manifest's patterns (common/text/pattern.h). `path` is the place of the text or of
// the list in the document. Texts that already have a problem are skipped. Reports a text that is
// not a regular expression.
void check_pattern(const std::string& path, const Json& text, Problems& problems);
// Reports each text that is not a regular expression.
void check_patterns(const std::string& path, const Json& list, Problems& problems);
// Reports each `from` that is not a regular expression, and each `to` that is not a valid
// replacement for it.
void check_renames(const std::string& path, const Json& list, Problems& problems);
// Reports each pattern that matches no layer with parameters, and a list that freezes all such
// layers. `model` is the model with the frozen layers. Precondition: all patterns are valid.
void check_frozen(const std::string& path, const Json& list, const compute::ModelSpec& model,
                  Problems& problems);

}  // namespace muster::spec
