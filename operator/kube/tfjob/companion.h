#pragma once

#include <string>

#include "common/document.h"
#include "operator/kube/api/resource.h"

namespace muster::kube {

// A TFJob (kubeflow.org/v1) is run by a TrainingJob that it owns, its companion: what is planned,
// placed and remembered is the companion's. These functions translate the one into the other.

Resource tfjobs();

// The TFJobs that this operator runs, by spec.runPolicy.managedBy.
enum class TakenTfJobs {
  marked,  // "muster.dev/operator"
  all      // that, the training-operator's name, and none
};
bool is_taken(const Json& tfjob, TakenTfJobs taken);

// Returns the name of the companion: the TFJob's own, or, if that is too long for a TrainingJob,
// its beginning and a digest.
std::string companion_name(const std::string& tfjob_name);

// The generation of the TFJob that the companion was last made from.
inline constexpr const char* kTfJobGenerationAnnotation = "muster.dev/tfjob-generation";

// Returns the companion as it is to be created. Throws Invalid, with every problem of the TFJob.
Json companion_of(const Json& tfjob);

}  // namespace muster::kube
