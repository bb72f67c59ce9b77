#pragma once

#include <string>

#include "common/documents/document.h"
#include "operator/convert/converted.h"

namespace muster::convert {

// The value of spec.runPolicy.managedBy for a TFJob of the training-operator, and its default.
inline constexpr const char* kTrainingOperator = "kubeflow.org/training-operator";

// Whether the manifest says, by its apiVersion or as a TFJob, that it is a job of Kubeflow's
// training-operator.
bool is_kubeflow_job(const Document& manifest);

// Returns the name of the TrainingJob that is made of a TFJob: the TFJob's own or, if that is too
// long for a TrainingJob, the beginning of it and eight digits of its digest.
std::string job_name_of_tfjob(const std::string& tfjob_name);

// Makes a TrainingJob of a TFJob (kubeflow.org/v1): the same programs in the same roles, with the
// same rules for restarts, success and the end. not_carried names each difference in behaviour.
// Throws Invalid with every problem of the manifest, also for the other kinds of Kubeflow's jobs.
// The TrainingJob is not validated: its names may be too long, for example.
Converted convert_tfjob(Document manifest);

}  // namespace muster::convert
