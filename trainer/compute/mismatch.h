#pragma once

#include <string>

namespace muster::compute {

// Why a model cannot be built, in terms of its spec, so that who read the spec from a file can say
// where it stands there.
struct Mismatch {
  int layer = -1;        // of ModelSpec::layers; -1: the model as a whole
  std::string field;     // of the layer, as model_spec.h names it: "units", "inputs[1]"; or empty
  std::string expected;  // "10 outputs, one for each class"
  std::string found;     // "12"
};

}  // namespace muster::compute
