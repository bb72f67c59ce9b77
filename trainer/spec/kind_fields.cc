#include "trainer/spec/kind_fields.h"

namespace muster::spec {

const std::vector<KindField>& optimizer_fields() {
  static const std::vector<KindField> fields = {
      {"momentum", {"sgd", "momentum", "rmsprop"}},
      {"nesterov", {"sgd", "momentum"}},
      {"decay", {"rmsprop"}},
      {"beta1", {"adam", "adamw", "lamb"}},
      {"beta2", {"adam", "adamw", "lamb"}},
      {"epsilon", {"adam", "adamw", "lamb", "rmsprop"}},
      {"weightDecay", {"adamw", "lamb"}},
      {"clipNorm", {"sgd", "momentum", "adam", "adamw", "rmsprop"}},
  };
  return fields;
}

const std::vector<KindField>& model_fields() {
  static const std::vector<std::string> models = {"mobilenet-v1", "ssd-mobilenet-v1"};
  static const std::vector<std::string> detectors = {"ssd-mobilenet-v1"};
  static const std::vector<KindField> fields = {{"depthMultiplier", models},
                                                {"classes", models},
                                                {"normalizationMomentum", models},
                                                {"classificationLoss", detectors},
                                                {"logitScale", detectors}};
  return fields;
}

const std::vector<KindField>& loss_fields() {
  static const std::vector<KindField> fields = {{"delta", {"huber"}},
                                                {"positiveWeight", {"binaryCrossEntropy"}},
                                                {"threshold", {"binaryCrossEntropy"}},
                                                {"quantile", {"quantile"}},
                                                {"quantiles", {"quantile"}}};
  return fields;
}

}  // namespace muster::spec
