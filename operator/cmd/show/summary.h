#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/api/training_job.h"
#include "operator/local/job_directory.h"
#include "operator/plan/values.h"

namespace muster::cmd {

// Returns the state of a job in one word: "Succeeded", "Failed", "Suspended" or "Running".
std::string state_of(const api::JobStatus& status);

// Returns the content of summary.json: {state, step, epochs, trainLoss, trainAccuracy,
// validationLoss, validationAccuracy, testLoss, testAccuracy, each further metric of an evaluation
// under two such names, notEvaluated, notMeasured, wallSeconds, trainSeconds, weightsDigest,
// checkpoint, model, onnx, secondsPerBatch, examplesPerSecond, stoppedEarly, reached, best,
// parameters, failure}, with checkpoint, model and onnx as paths below the directory. Unknown
// values are null. If an unreadable checkpoint hides which one is the newest, all values from
// checkpoints are null too, and step is the last reported step. For a succeeded job the values come
// from result.json; for another job from its newest whole checkpoint (step 0 if it trained and has
// none); for both also from the evaluation of that step. notEvaluated names, for a succeeded job,
// the data of its `training` that lack an evaluation: {"validation": why, "test": why}; null if
// none do. notMeasured lists the data whose evaluation came to no metric; null if there are none.
// parameters is the result of few_parameters(). failure says why the job failed: {reason, message,
// replica, exitCode, log}; replica, exitCode and log are those of the replica that decided the
// failure, null if none did.
Json summary_of(const local::JobDirectory& directory, const api::TrainingJob& job,
                const std::vector<plan::ObservedReplica>& replicas, double wall_seconds);

// Returns the summary of a job on a cluster, made only from its status: without parameters and
// failure; the paths of checkpoint, model and onnx are those that the replicas see. `replicas` are
// the replicas that still have a pod.
Json summary_of(const api::TrainingJob& job, const std::vector<plan::ObservedReplica>& replicas);

// Returns the summary for people (summary_text.h), with the paths of the job's files as seen from
// the working directory.
Json with_shown_files(Json summary, const local::JobDirectory& directory);

// The replica whose end decided that the job failed.
struct Failure {
  std::string name;
  std::optional<int> exit_code;
  std::string reason;  // as in ObservedReplica
};
std::optional<Failure> deciding_failure(const api::TrainingJob& job,
                                        const std::vector<plan::ObservedReplica>& replicas);

// Returns why the job failed, "(PermanentExitCode): chief-0 ended with exit code 90 (the loss is
// not finite)", without the failed replica's last message, which log_end_text() shows.
std::string cause_text(const api::TrainingJob& job,
                       const std::vector<plan::ObservedReplica>& replicas);

// Returns the last lines of the log of the replica that decided the failure; "" if none did.
std::string log_end_text(const api::TrainingJob& job,
                         const std::vector<plan::ObservedReplica>& replicas,
                         const local::JobDirectory& directory);

// Returns the exit code of `muster run` once the job has finished: 0 if it succeeded; kNotEvaluated
// if the summary names data without an evaluation; kDeadline if its deadline has passed; else the
// deciding replica's own code if a program chose the code (below 126); kUnavailable if that replica
// could not be started; else kInternal.
int exit_code_of(const api::TrainingJob& job, const std::vector<plan::ObservedReplica>& replicas,
                 const Json& summary);

}  // namespace muster::cmd
