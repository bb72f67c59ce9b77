#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/system/descriptor.h"
#include "operator/local/processes/process_table.h"

namespace muster::local {

// The command and the surroundings with which a process starts.
struct Launch {
  std::vector<std::string> command;  // not empty; command[0] without a slash is looked up in PATH
  std::vector<std::string> environment;  // NAME=value, the whole of it
  std::filesystem::path directory;       // its working directory
  std::filesystem::path log;             // stdout and stderr are appended here; "": to our stdout
  std::filesystem::path pid_file;  // holds its ProcessIdentity before its first instruction, or ""
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
  // Returns the exit code (128 + n for signal n) once the process has ended; then kills what is
  // left of its group, and what a replica has started in other groups, and removes its pid file.
  // Does not block.
  std::optional<int> collect();

 private:
  ProcessIdentity identity_;
  Descriptor pidfd_;
  std::filesystem::path pid_file_;
  std::vector<std::string> marks_;  // see kill_marked()
  std::optional<int> exit_code_;
};

}  // namespace muster::local
