#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/system/descriptor.h"
#include "operator/local/processes/process_table.h"

namespace muster::local {

// The command, the environment and the files with which a process starts.
struct Launch {
  std::vector<std::string> command;  // not empty; command[0] without a slash is looked up in PATH
  std::vector<std::string> environment;  // the whole environment, as NAME=value
  std::filesystem::path directory;       // its working directory
  std::filesystem::path log;             // file to append stdout and stderr to; "": our stdout
  // File that gets its ProcessIdentity before its first instruction; "": none.
  std::filesystem::path pid_file;
};

// A child process that leads a process group of its own. It never outlives its parent: the kernel
// kills it when the thread that constructed this object ends. That thread must therefore stay until
// all children are gone.
class Process {
 public:
  // Throws Unavailable if no process can be made, WriteError if log or pid file cannot be written.
  // A command that cannot be executed ends with 127 or 126 and says so in the log, as in a shell.
  explicit Process(const Launch& launch);
  // Kills the group if it still runs.
  ~Process();
  Process(Process&&) noexcept;
  Process& operator=(Process&&) = delete;

  pid_t pid() const { return identity_.pid; }
  // Returns a descriptor that becomes readable when the process has ended.
  int descriptor() const { return pidfd_.get(); }
  // Sends the signal to the whole group.
  void signal(int number) const;
  // Returns the exit code (128 + n for signal n) once the process has ended; then kills the rest of
  // its group and the processes that the replica has started in other groups, and removes the pid
  // file. Does not block.
  std::optional<int> collect();

 private:
  ProcessIdentity identity_;
  Descriptor pidfd_;
  std::filesystem::path pid_file_;
  std::vector<std::string> marks_;  // see kill_marked()
  std::optional<int> exit_code_;
};

}  // namespace muster::local
