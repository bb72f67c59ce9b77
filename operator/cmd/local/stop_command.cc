#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/output.h"
#include "common/system/descriptor.h"
#include "common/system/system_words.h"
#include "operator/api/status.h"
#include "operator/cmd/job/job_source.h"
#include "operator/cmd/job/stored_job.h"
#include "operator/cmd/local/commands.h"
#include "operator/cmd/show/summary.h"
#include "operator/local/run_lock.h"

namespace muster::cmd {

namespace {

constexpr auto kGuardTakesAtMost = std::chrono::seconds(10);

// Waits for the guard of a run that was killed, because the guard ends its replicas.
void wait_for_guard(const local::JobDirectory& directory) {
  if (local::RunLock::wait_until_free(directory, kGuardTakesAtMost)) return;
  throw Unavailable(shown(directory.root()) + ": expected its replicas to end within " +
                    std::to_string(kGuardTakesAtMost.count()) + " s, found some that have not");
}

}  // namespace

int stop_job(const std::filesystem::path& path, bool now) {
  const local::JobDirectory directory = load_stored_job(path).directory;
  const std::optional<local::ProcessIdentity> runner = local::RunLock::holder(directory);
  if (!runner) {
    wait_for_guard(directory);
    const api::JobStatus status = load_stored_job(path).job.status;
    const std::string why = status.is_true("Finished")
                                ? "it has finished (" + state_of(status) + ")"
                                : "no `muster run` runs this job";
    print(stdout, "{}: {}, and there is nothing to stop\n", shown(directory.root()), why);
    return kSuccess;
  }
  const Descriptor watch(static_cast<int>(::syscall(SYS_pidfd_open, runner->pid, 0)));
  // The descriptor keeps the process number from being reused. The signal is sent only if the
  // number still belongs to the runner.
  if (watch && local::is_alive(*runner)) {
    const auto send = [&](int number) {
      return ::syscall(SYS_pidfd_send_signal, watch.get(), number, nullptr, 0) == 0;
    };
    if (!send(SIGTERM) || (now && !send(SIGINT))) {
      throw Unavailable("cannot signal process " + std::to_string(runner->pid) + ": " +
                        system_words(errno));
    }
    pollfd ended{watch.get(), POLLIN, 0};
    while (::poll(&ended, 1, -1) < 0 && errno == EINTR) {
    }
  }
  wait_for_guard(directory);
  print(stdout, "{}: {}\n", shown(directory.root()), state_of(load_stored_job(path).job.status));
  return kSuccess;
}

}  // namespace muster::cmd
