#pragma once

#include <string>
#include <vector>

namespace muster::spec {

// A field that only some kinds of an object have. A kind without the field refuses it: check.cc
// says so, and so does the rule for the API server that schema.cc makes of it.
struct KindField {
  const char* field;
  std::vector<std::string> kinds;
};

const std::vector<KindField>& optimizer_fields();  // of `optimizer`, by its name
const std::vector<KindField>& model_fields();      // of `model`, by its name, or by "layers"
const std::vector<KindField>& loss_fields();       // of `model.lossOptions`, by the loss

}  // namespace muster::spec
