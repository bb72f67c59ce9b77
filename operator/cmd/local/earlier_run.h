#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/cmd/job/job_source.h"
#include "operator/local/job_directory.h"

namespace muster::cmd {

// Says what an earlier run of a job's directory means for the next one.

// Returns the state of an earlier run of the same directory, or a new one; `source.job` gets its
// values.
local::JobState adopt_state(JobSource& source);

// Follows --retry and --continue: makes a failed job, or one that has succeeded, continue. Returns
// what the job does now, for example "resumes". Adds to `notes`.
const char* follow_wishes(JobSource& source, local::JobState& state, const RunOptions& options,
                          std::vector<std::string>& notes);

// Says once more that the job has finished, in an earlier run.
int show_finished(const JobSource& source, const local::JobState& state, const RunOptions& options);

// Whether other hosts may still run replicas of a `muster run` that was lost with its machine. Such
// replicas end only when their own timeout (kPatience) has passed.
bool may_live_unseen(const api::TrainingJob& job, const local::JobState& state,
                     const std::optional<local::ProcessIdentity>& last);

}  // namespace muster::cmd
