#pragma once

#include <chrono>
#include <string>

#include "common/documents/problems.h"
#include "operator/api/training_job.h"

namespace muster::api {

// Adds the problems of a TrainingJob's pod templates, except those that only follow from a problem
// that is already in `problems`.
void check_templates(const Document& document, Problems& problems);

// Whether a template may not set `variable`. True for TF_CONFIG and MUSTER_*, except the variables
// that a user may set (common/variables.h).
bool is_reserved(const std::string& variable);

// Returns the container that counts (named trainer, else tensorflow, else the only one) of a
// PodTemplateSpec, or null.
const Json& counting_container(const Json& pod_template);
// Returns the counting container of a role's template. In a job that a TFJob owns, the name
// tensorflow takes precedence over trainer, because kubeflow.org/v1 looks at the container
// tensorflow.
const Json& counting_container(const TrainingJob& job, Role role);

// The default terminationGracePeriodSeconds of replicas that run muster-trainer.
inline constexpr int kGraceSeconds = 120;
// Returns the time from SIGTERM until a replica of this PodTemplateSpec is killed, at most a day.
std::chrono::seconds grace_of(const Json& pod_template);

// The resource that a container asks for to have GPUs of its own.
inline constexpr const char* kGpus = "nvidia.com/gpu";
// Whether a container asks for GPUs or for parts of them.
bool asks_for_nvidia(const Json& container);
// Returns how many kGpus a container asks for; 0 if it asks for none.
int asked_gpus(const Json& container);

}  // namespace muster::api
