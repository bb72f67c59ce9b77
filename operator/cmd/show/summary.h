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
// under two such names, notEvaluated, wallSeconds, trainSeconds, weightsDigest, checkpoint, model,
// onnx, secondsPerBatch, examplesPerSecond, stoppedEarly, reached, best, parameters, failure}, with
// checkpoint, model and onnx as paths below the directory. Unknown values are null, as are all
// values of a checkpoint if an unreadable one hides which is the newest (step is then the last one
// reported). A job that succeeded has these values from result.json, another job from its newest
// whole checkpoint (step 0 if it trained and has none), and both from the evaluation of that step.
// notEvaluated is
// {"validation": why, "test": why} for a job that succeeded, for data that its `training` has and
// that have no evaluation; null if nothing is missing. parameters are those of a model with few
// (few_parameters). failure is why a job failed, {reason, message, replica, exitCode, log}; the
// last three are those of the replica that decided the failure, null if none did.
Json summary_of(const local::JobDirectory& directory, const api::TrainingJob& job,
                const std::vector<plan::ObservedReplica>& replicas, double wall_seconds);

// Returns the summary of a job on a cluster, made from its status alone: without parameters and
// failure, and with checkpoint, model and onnx as the replicas see them. `replicas` are those that
// still have a pod.
Json summary_of(const api::TrainingJob& job, const std::vector<plan::ObservedReplica>& replicas);

// Returns summary.json with the job's files named as the user would name them from the working
// directory, for people (summary_text.h).
Json with_shown_files(Json summary, const local::JobDirectory& directory);

// The replica that decided by its end that the job failed.
struct Failure {
  std::string name;
  std::optional<int> exit_code;
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

// Returns the exit code of `muster run` once the job has finished: 0 if it succeeded, kNotEvaluated
// if the summary says so of some data; kDeadline if its deadline had passed; else the deciding
// replica's own code, if that is one a program chose (below 126), or kInternal.
int exit_code_of(const api::TrainingJob& job, const std::vector<plan::ObservedReplica>& replicas,
                 const Json& summary);

}  // namespace muster::cmd
