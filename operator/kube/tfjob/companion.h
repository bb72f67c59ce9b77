#pragma once

#include <string>

#include "common/documents/document.h"
#include "operator/kube/api/resource.h"

namespace muster::kube {

// A TFJob (kubeflow.org/v1) is run by its companion: a TrainingJob that the TFJob owns. The plan,
// the pods and the records are those of the companion. These functions translate a TFJob into its
// companion.

// The TFJobs that this operator runs, by spec.runPolicy.managedBy.
enum class TakenTfJobs {
  none,
  marked,  // "muster.dev/operator"
  all      // "muster.dev/operator", the training-operator's name, and left out
};
bool is_taken(const Json& tfjob, TakenTfJobs taken);

// Both functions return a generation of the TFJob as text: its current generation, and the
// generation that the companion was last made from, which is in the companion's annotation.
inline constexpr const char* kTfJobGenerationAnnotation = "muster.dev/tfjob-generation";
std::string generation_of(const Json& tfjob);
std::string tfjob_generation_of(const Json& companion);

// Returns the companion to create, with `gang_scheduler` as its schedulingPolicy.gang. Without a
// gang scheduler the TFJob's schedulingPolicy has no effect, as in v1. Throws Invalid, with every
// problem of the TFJob.
Json companion_of(const Json& tfjob, const std::string& gang_scheduler = "");

// Returns the problems of the companion, one line for each, with the names of the TFJob's fields;
// "" if there are none. Takes longer than companion_of(), and throws the same errors.
std::string companion_problems(const Json& tfjob, const std::string& gang_scheduler = "");

}  // namespace muster::kube
