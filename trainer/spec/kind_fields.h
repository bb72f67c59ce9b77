#pragma once

#include <string>
#include <vector>

namespace muster::spec {

// A field that only some kinds of an object have. A kind without the field refuses it: check.cc
// reports it, and schema.cc makes a rule for the API server from it.
struct KindField {
  const char* field;
  std::vector<std::string> kinds;
};

const std::vector<KindField>& optimizer_fields();  // fields of `optimizer`, by its name
const std::vector<KindField>& model_fields();      // fields of `model`, by its name, or by "layers"
const std::vector<KindField>& loss_fields();       // fields of `model.lossOptions`, by the loss

}  // namespace muster::spec
