#pragma once

#include <string>

namespace muster::compute {

// The reason why a model cannot be built, in terms of its spec. A caller that read the spec from a
// file can then name the place in the file.
struct Mismatch {
  int layer = -1;        // index in ModelSpec::layers; -1: the model as a whole
  std::string field;     // the layer's field as model_spec.h names it, for example "units",
                         // "inputs[1]"; or empty
  std::string expected;  // "10 outputs, one for each class"
  std::string found;     // "12"
};

}  // namespace muster::compute
