#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/cmd/job/job_source.h"
#include "trainer/checkpoint/store/store.h"
#include "trainer/spec/changes.h"

namespace muster::cmd {

// Finds the newest whole checkpoint of a job's directory, and any damaged newer ones, which the
// chief reports too. Throws Unavailable if something cannot be read.
checkpoint::Store::Search search_checkpoints(const local::JobDirectory& directory);

// Returns the changes of the manifest since the directory was last run.
std::vector<spec::Change> changes_since_last_run(const JobSource& source);

// Checks whether the job, with its present manifest, may continue from the files in its directory.
// Changes nothing there. Throws Invalid with kProtocol, naming the other job, if the directory
// belongs to another job. Throws Invalid if the job cannot continue from the newest checkpoint,
// naming each field that prevents it, with both values and its line; or naming each checkpoint if
// all are damaged. Without a checkpoint the job begins at step 0 (see check_initial_weights).
// Returns a sentence for every other change, and for anything that the user may not expect.
std::vector<std::string> check_resume(const JobSource& source);

// Returns why a job that has succeeded has nothing to train with its present manifest, and how to
// ask for more: "expected ..., found ..."; "" if it has, or if there is no checkpoint to tell by.
std::string nothing_to_train(const JobSource& source);

// Returns why a job that failed with `exit_code` should not be retried unchanged, or "".
std::string retry_warning(const JobSource& source, int exit_code);

// Returns how to continue a failed job: what to fix, the step that it continues from, and the
// command. If all checkpoints are damaged or unreadable, the text begins with this error instead of
// throwing it.
std::string how_to_retry(const JobSource& source, const RunOptions& options, int exit_code);

// Returns "muster run job.yaml --set a=b --directory run", and `more` arguments, quoted for a
// shell.
std::string run_command(const RunOptions& options, const local::JobDirectory& directory,
                        const std::vector<std::string>& more = {});

}  // namespace muster::cmd
