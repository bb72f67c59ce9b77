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

// Checks whether the job may go on from what is in its directory, with the manifest as it is now,
// and changes nothing there. Throws Invalid with kProtocol, naming the other job, if the directory
// is another job's. Otherwise it names every field that stands in the way of going on from the
// newest checkpoint, with both values and its line, or each checkpoint if all are damaged. Without
// a checkpoint the job begins at step 0: see check_initial_weights. Returns a sentence for
// everything else that has changed or that the user may not expect.
std::vector<std::string> check_resume(const JobSource& source);

// Returns why a job that failed and ended with `exit_code` should not be retried as it is, or "".
std::string retry_warning(const JobSource& source, int exit_code);

// Returns how to go on with a failed job: what to fix, the position it continues from, and the
// command. If its checkpoints are all damaged or cannot be read, that comes first and is not
// thrown.
std::string how_to_retry(const JobSource& source, const RunOptions& options, int exit_code);

// Returns "muster run job.yaml --set a=b --directory run", and `more` arguments, quoted for a
// shell.
std::string run_command(const RunOptions& options, const local::JobDirectory& directory,
                        const std::vector<std::string>& more = {});

}  // namespace muster::cmd
