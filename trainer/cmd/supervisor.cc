// PID 1 of the trainer image: see trainer/supervise/supervisor.h.

#include "trainer/supervise/supervisor.h"

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "common/environment.h"
#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/log.h"
#include "common/program/output.h"
#include "common/system/signals.h"

namespace muster::supervise {

namespace {

constexpr const char* kUsageText =
    "Usage: muster-supervisor COMMAND [ARGUMENT...]\n"
    "Runs COMMAND, and again, at once, when it ends with a code that a restart can help: at most\n"
    "MUSTER_RESTARTS_IN_PLACE times (3) within 10 minutes. Signals are handed on to it. Ends as "
    "the\n"
    "last one did.\n";

// Returns the same name as in the trainer's own log lines.
std::string log_name() {
  return environment_variable("MUSTER_JOB", "standalone") + "-" +
         environment_variable("MUSTER_ROLE", "chief") + "-" +
         environment_variable("MUSTER_INDEX", "0");
}

int supervise(std::vector<std::string> command) {
  log::initialize(log_name());
  try {
    return Supervisor(options_from_environment(std::move(command))).run();
  } catch (const Invalid& error) {
    log::error(error.what());
    return error.exit_code();
  } catch (const Unavailable& error) {
    log::error(error.what());
    return kUnavailable;
  }
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments[0].starts_with("-")) {
    if (arguments == std::vector<std::string>{"--version"})
      return std::puts("muster-supervisor " MUSTER_VERSION) < 0 ? kCannotWrite : kSuccess;
    const bool asked = arguments == std::vector<std::string>{"--help"};
    std::fputs(kUsageText, asked ? stdout : stderr);
    return asked ? kSuccess : kUsage;
  }
  return supervise(arguments);
}

}  // namespace

}  // namespace muster::supervise

int main(int argc, char** argv) {
  muster::occupy_standard_descriptors();
  muster::survive_large_writes();
  return muster::supervise::run({argv + 1, argv + argc});
}
