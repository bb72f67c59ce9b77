#include "trainer/spec/open_classes.h"

#include <algorithm>

#include "common/documents/json.h"
#include "trainer/spec/kind_fields.h"

namespace muster::spec {

bool leaves_classes_open(const Json& model) {
  if (given(model, "classes")) return false;
  const std::string name = string_or(model, "name", "");
  return std::ranges::any_of(model_fields(), [&](const KindField& field) {
    return std::string_view(field.field) == "classes" &&
           std::ranges::find(field.kinds, name) != field.kinds.end();
  });
}

void fill_in_classes(Json& training, const LookUp& look_up) {
  if (!leaves_classes_open(member(training, "model"))) return;
  const DataSource train = to_source(member(member(training, "data"), "train"), true);
  std::optional<DataFacts> facts;
  if (*words_of(train).files != 0) facts = look_up("train", train);
  if (!facts) facts = facts_by_manifest(train);
  if (facts && facts->label_count > 0) training["model"]["classes"] = facts->label_count;
}

}  // namespace muster::spec
