#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "operator/api/training_job.h"

namespace muster::cmd {

// An operator that runs has looked at a new or changed job sooner than this.
inline constexpr std::chrono::seconds kOperatorTakes{10};

// When the object was created or, but for its status, changed last, by its metadata.
std::optional<api::Time> changed_of(const Json& object);

// Whether no operator has looked at the job as it is: status.observedGeneration is behind.
bool is_unattended(const api::TrainingJob& job);

// "no operator has looked at this job: is one running? ...": for a job that has been unattended for
// kOperatorTakes.
std::string unattended_text(const api::TrainingJob& job);

}  // namespace muster::cmd
