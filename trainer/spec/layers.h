#pragma once

#include <string>
#include <vector>

#include "common/documents/problems.h"

namespace muster::spec {

// Returns the name of the only field of an entry of model.layers ("dense"), or "" for anything
// else.
std::string layer_kind(const Json& entry);

// Returns the name of every layer: its own, or kind and number ("dense_2",
// "batch_normalization_1"). The number counts the layers of the kind and skips names that are
// taken.
std::vector<std::string> layer_names(const Json& layers);

// Reports problems of model.layers at `path` ("spec.training.model.layers"): names that are taken,
// inputs that are not earlier layers, outputs that no layer uses, scales of initializers. Accepts a
// value that failed its schema.
void check_layers(const Document& document, const std::string& path, Problems& problems);

}  // namespace muster::spec
