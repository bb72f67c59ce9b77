#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/output.h"
#include "operator/cmd/job/job_source.h"
#include "operator/cmd/job/stored_job.h"
#include "operator/cmd/local/commands.h"
#include "operator/cmd/show/log_merge.h"
#include "operator/cmd/show/log_printer.h"
#include "operator/local/job_directory.h"
#include "operator/local/run_lock.h"

namespace muster::cmd {

namespace {

constexpr int kFollowMilliseconds = 200;

// Returns the names that have a log and, while the job runs, those that will have one.
std::set<std::string> known_names(const local::JobDirectory& directory) {
  std::set<std::string> names = logged_names(directory.logs());
  if (!local::RunLock::holder(directory)) return names;
  const api::TrainingJob job = load_stored_job(directory.root()).job;
  for (const auto& [role, spec] : job.replicas) {
    for (int index = 0; index < spec.replicas; ++index) {
      names.insert(local::replica_name(job, role, index));
    }
  }
  return names;
}

void require_known(const local::JobDirectory& directory, const std::vector<std::string>& asked) {
  const std::set<std::string> known = known_names(directory);
  if (known.empty()) {
    throw Invalid(shown(directory.root()) + ": expected the logs of a job, found none");
  }
  for (const std::string& name : asked) {
    const bool found = std::ranges::any_of(
        known, [&](const std::string& replica) { return means(name, replica); });
    if (found) continue;
    throw Invalid(fmt::format("{}: expected one of: {}; or one of their roles; found \"{}\"",
                              shown(directory.root()), fmt::join(known, ", "), name));
  }
}

}  // namespace

int show_logs(const LogOptions& options) {
  const local::JobDirectory directory(options.directory);
  require_known(directory, options.replicas);
  LogMerger merger(directory.logs(), options.replicas);
  LogPrinter printer(options.json, takes_colour(stdout));
  for (bool last = false;;) {
    // The runner is checked before the read, so that the last read gets everything that the runner
    // has written.
    last = !options.follow || !local::RunLock::holder(directory);
    const std::vector<MergedLine> lines = merger.read(options.tail, last);
    printer.know(merger.names());
    for (const auto& [replica, line] : lines) {
      print(stdout, "{}\n", printer.line(replica, line.text, written(line)));
    }
    std::fflush(stdout);
    if (last || std::ferror(stdout) != 0) break;
    ::poll(nullptr, 0, kFollowMilliseconds);
  }
  return kSuccess;
}

}  // namespace muster::cmd
