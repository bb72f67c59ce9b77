#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "operator/api/training_job.h"

namespace muster::cmd {

// A running operator looks at a new or changed job within this time.
inline constexpr std::chrono::seconds kOperatorTakes{10};

// Returns when the object was created or last changed, by its metadata; changes of its status do
// not count.
std::optional<api::Time> changed_of(const Json& object);
// Returns when the object's status was last written.
std::optional<api::Time> status_written_of(const Json& object);

// Whether no operator has looked at the job's present version: status.observedGeneration is behind.
bool is_unattended(const api::TrainingJob& job);

// Returns "no operator has looked at this job: is one running? ...", for a job that has been
// unattended for kOperatorTakes.
std::string unattended_text(const api::TrainingJob& job);

}  // namespace muster::cmd
