#include <fmt/format.h>
#include <poll.h>

#include <cstdio>

#include "common/error.h"
#include "common/exit_code.h"
#include "operator/cmd/commands.h"
#include "operator/cmd/job_source.h"
#include "operator/cmd/log_merge.h"
#include "operator/local/job_directory.h"
#include "operator/local/run_lock.h"

namespace muster::cmd {

namespace {

constexpr int kFollowMilliseconds = 200;

}  // namespace

int show_logs(const LogOptions& options) {
  const local::JobDirectory directory(options.directory);
  LogMerger merger(directory.logs(), options.replicas);
  for (bool last = false;;) {
    // What is written before the runner was seen to be gone is read after.
    last = !options.follow || !local::RunLock::holder(directory);
    for (const std::string& line : merger.read(options.tail, last)) fmt::print("{}\n", line);
    std::fflush(stdout);
    if (last || std::ferror(stdout) != 0) break;
    ::poll(nullptr, 0, kFollowMilliseconds);
  }
  if (merger.found_any()) return kSuccess;
  throw Invalid(shown(directory.root()) + ": expected logs" +
                (options.replicas.empty() ? "" : " of " + options.replicas.front()) +
                ", found none");
}

}  // namespace muster::cmd
