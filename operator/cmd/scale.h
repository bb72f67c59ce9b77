#pragma once

#include "operator/api/training_job.h"

namespace muster::cmd {

// Throws Invalid, saying what was expected, for a job that cannot be scaled to so many workers
// while it runs: one that is not elastic or whose end is decided, or a number out of its limits.
void require_scalable(const api::TrainingJob& job, int workers);

// "3 workers".
std::string workers_text(int workers);

}  // namespace muster::cmd
