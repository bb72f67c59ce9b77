#pragma once

#include <string>

#include "common/documents/document.h"
#include "operator/kube/api/resource.h"

namespace muster::kube {

// A TFJob (kubeflow.org/v1) is run by a TrainingJob that it owns, its companion: what is planned,
// placed and remembered is the companion's. These functions translate the one into the other.

// The TFJobs that this operator runs, by spec.runPolicy.managedBy.
enum class TakenTfJobs {
  none,
  marked,  // "muster.dev/operator"
  all      // that, the training-operator's name, and none
};
bool is_taken(const Json& tfjob, TakenTfJobs taken);

// Both return a generation of the TFJob as text: the present one, and the one that the companion
// was last made from, which is in its annotation.
inline constexpr const char* kTfJobGenerationAnnotation = "muster.dev/tfjob-generation";
std::string generation_of(const Json& tfjob);
std::string tfjob_generation_of(const Json& companion);

// Returns the companion as it is to be created, with this schedulingPolicy.gang; without one, the
// TFJob's schedulingPolicy has no meaning, as in v1. Throws Invalid, with every problem of the
// TFJob.
Json companion_of(const Json& tfjob, const std::string& gang_scheduler = "");

// Returns what is wrong with that companion, in the words of the TFJob's own fields and a line for
// each; "" if nothing is. Takes longer than companion_of(). Throws as that does.
std::string companion_problems(const Json& tfjob, const std::string& gang_scheduler = "");

}  // namespace muster::kube
