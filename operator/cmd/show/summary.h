#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/api/training_job.h"
#include "operator/local/job_directory.h"
#include "operator/plan/values.h"

namespace muster::cmd {

// "Succeeded", "Failed", "Suspended" or "Running": how a status stands, in one word.
std::string state_of(const api::JobStatus& status);

// summary.json: {state, step, epochs, trainLoss, trainAccuracy, validationLoss, validationAccuracy,
// testLoss, testAccuracy, and each further metric of an evaluation as these two, notEvaluated,
// wallSeconds, trainSeconds, weightsDigest, checkpoint, model, secondsPerBatch, examplesPerSecond,
// stoppedEarly, best, parameters, failure}, with checkpoint and model as paths below the directory;
// null where unknown, as are all of a checkpoint where no one can tell which is the newest for one
// that cannot be read (step is then the last one heard of). A job that succeeded has them from
// result.json, another one from its newest whole checkpoint (step 0 if it trained and has none),
// and both from the evaluation of that step. notEvaluated: {"validation": why, "test": why} of a
// job that succeeded, for data its `training` has and whose evaluation is not there; null where
// nothing is missing. parameters: those of a model with few (few_parameters). failure: why a job
// failed, {reason, message, replica, exitCode, log}, the last three of the replica whose end
// decided that, null where none did.
Json summary_of(const local::JobDirectory& directory, const api::TrainingJob& job,
                const std::vector<plan::ObservedReplica>& replicas, double wall_seconds);

// This one makes the summary of a job on a cluster from its status alone: without parameters and
// failure, and with checkpoint and model as the replicas see them. `replicas` are those whose pods
// are still there.
Json summary_of(const api::TrainingJob& job, const std::vector<plan::ObservedReplica>& replicas);

// summary.json with the files of the job as the user would name them from here, for people
// (summary_text.h).
Json with_shown_files(Json summary, const local::JobDirectory& directory);

// The replica whose end decided that the job failed.
struct Failure {
  std::string name;
  std::optional<int> exit_code;
};
std::optional<Failure> deciding_failure(const api::TrainingJob& job,
                                        const std::vector<plan::ObservedReplica>& replicas);

// "(PermanentExitCode): chief-0 ended with exit code 90 (the loss is not finite)": why the job
// failed, without what the failed replica said last, which log_end_text() shows.
std::string cause_text(const api::TrainingJob& job,
                       const std::vector<plan::ObservedReplica>& replicas);

// The last lines of the log of the replica whose end decided; "" if none did.
std::string log_end_text(const api::TrainingJob& job,
                         const std::vector<plan::ObservedReplica>& replicas,
                         const local::JobDirectory& directory);

// What `muster run` ends with once the job has finished: 0 where it succeeded, kNotEvaluated if the
// summary says so of some data; kDeadline where its deadline had passed; else the deciding
// replica's own code, if that is one a program chose (below 126), or kInternal.
int exit_code_of(const api::TrainingJob& job, const std::vector<plan::ObservedReplica>& replicas,
                 const Json& summary);

}  // namespace muster::cmd
