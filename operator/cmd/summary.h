#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/api/training_job.h"
#include "operator/local/job_directory.h"
#include "operator/plan/plan.h"

namespace muster::cmd {

// "Succeeded", "Failed", "Suspended" or "Running": how a status stands, in one word.
std::string state_of(const api::JobStatus& status);

// summary.json: {state, step, epochs, trainLoss, validationLoss, validationAccuracy, testLoss,
// testAccuracy, notEvaluated, wallSeconds, weightsDigest, checkpoint, model, secondsPerBatch,
// examplesPerSecond}, joined from result.json (checkpoint and model as paths below the directory)
// and the evaluation of its step; null where unknown. notEvaluated: {"validation": why, "test":
// why} of a job that succeeded, for data its `training` has and whose evaluation is not there; null
// where nothing is missing.
Json summary_of(const local::JobDirectory& directory, const api::TrainingJob& job,
                const std::vector<plan::ObservedReplica>& replicas, double wall_seconds);

// The same for people, several lines.
std::string summary_text(const std::string& name, const Json& summary,
                         const local::JobDirectory& directory);

// The replica whose end decided that the job failed.
struct Failure {
  std::string name;
  std::optional<int> exit_code;
};
std::optional<Failure> deciding_failure(const api::TrainingJob& job,
                                        const std::vector<plan::ObservedReplica>& replicas);

// Which replica failed, how, and the last lines of its log.
std::string failure_text(const api::TrainingJob& job,
                         const std::vector<plan::ObservedReplica>& replicas,
                         const local::JobDirectory& directory);

// What `muster run` ends with once the job has finished: 0 where it succeeded, kNotEvaluated if the
// summary says so of some data; else the deciding replica's own code, if that is one a program
// chose (below 126), or kInternal.
int exit_code_of(const api::TrainingJob& job, const std::vector<plan::ObservedReplica>& replicas,
                 const Json& summary);

}  // namespace muster::cmd
