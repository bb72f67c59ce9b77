#include "trainer/spec/kind_fields.h"

namespace muster::spec {

const std::vector<KindField>& optimizer_fields() {
  static const std::vector<KindField> fields = {
      {"momentum", {"sgd", "momentum"}},      {"nesterov", {"sgd", "momentum"}},
      {"beta1", {"adam", "adamw", "lamb"}},   {"beta2", {"adam", "adamw", "lamb"}},
      {"epsilon", {"adam", "adamw", "lamb"}}, {"weightDecay", {"adamw", "lamb"}},
  };
  return fields;
}

const std::vector<KindField>& loss_fields() {
  static const std::vector<KindField> fields = {{"delta", {"huber"}}};
  return fields;
}

}  // namespace muster::spec
