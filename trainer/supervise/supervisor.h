#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/system/descriptor.h"
#include "trainer/supervise/last_line.h"
#include "trainer/supervise/restart_rule.h"

namespace muster::supervise {

struct Options {
  std::vector<std::string> command;  // not empty; command[0] without a slash is looked up in PATH
  int restarts = 3;                  // in place within RestartRule::kWindow, at most
  // The file is written only if it exists (the kubelet creates it), and after every end of the
  // trainer, so that the count survives the end of the supervisor.
  std::filesystem::path termination_log = "/dev/termination-log";
  // The job's folder, where its leader and its evaluator write their results; empty: there is none.
  std::filesystem::path folder;
  bool evaluates = false;  // the command is an evaluator: its results count with any exit code
};

// Returns the options from MUSTER_RESTARTS_IN_PLACE, MUSTER_TERMINATION_LOG, MUSTER_STORAGE and
// MUSTER_ROLE, if they are set. Throws Invalid (kBadConfig) naming the variable.
Options options_from_environment(std::vector<std::string> command);

// PID 1 of a container (or any other process). It runs a command as its child. If RestartRule
// allows it, it starts the command again at once when it ends, with the number of restarts in
// MUSTER_RESTARTS. MUSTER_ATTEMPT stays the same: it is the pod's attempt, and must stay below that
// of a pod that replaces this one. Signals are forwarded to the child's process group; after
// SIGTERM, SIGINT or SIGQUIT nothing is restarted. Processes that the child leaves in its group are
// killed first, and every orphan is reaped. Standard error passes through the supervisor, which
// keeps its last line.
//
// It has one thread and needs the process to itself: it blocks the process's signals and reaps all
// children.
class Supervisor {
 public:
  explicit Supervisor(Options options);
  // Returns the exit code for the container: the last child's exit code, or 128 + n for signal n.
  // Throws Unavailable if a process cannot be started.
  int run();

 private:
  struct End {
    int exit_code;
    bool out_of_memory;
  };
  void start();
  End wait_for_end();
  void handle_signals();
  void reap();
  void clear_group();
  void pass_on();
  void leave_message(const End& end) const;
  bool is_restarted(const End& end);  // logs the decision, too

  Options options_;
  RestartRule rule_;
  Descriptor signals_;
  Descriptor errors_;  // the child's standard error
  LastLine last_line_;
  pid_t child_ = 0;
  std::optional<int> exit_code_;  // exit code of the child, once it has ended
  bool stopping_ = false;
};

}  // namespace muster::supervise
