#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::local {

// One process of this machine, distinguished from a later process with the same number.
struct ProcessIdentity {
  pid_t pid = 0;
  uint64_t start_time = 0;  // clock ticks since boot: field 22 of /proc/<pid>/stat
  std::string boot;         // /proc/sys/kernel/random/boot_id

  // Returns "1234 567890 2c1f...": the pid first, for people and for `kill`.
  std::string text() const;
  // Returns nothing if `text` does not have the form of text().
  static std::optional<ProcessIdentity> parse(const std::string& text);
  // Returns nothing if there is no such process.
  static std::optional<ProcessIdentity> of(pid_t pid);
  bool operator==(const ProcessIdentity&) const = default;
};

// Returns true while exactly this process runs; a zombie has ended.
bool is_alive(const ProcessIdentity& process);

// Returns true while a process of this group runs; zombies have ended.
bool is_group_alive(pid_t group);

// Sends SIGKILL to the rest of `leader`'s process group: to the whole group while the leader is
// alive; otherwise only to members that have `mark` ("NAME=value") in their environment, because
// the group number may belong to other processes by now. Returns the number of these processes.
int kill_group(const ProcessIdentity& leader, const std::string& mark);

// Sends SIGKILL to all other processes that have all of `marks` in their environment: processes
// that a replica has started in a separate group, as torchrun does. Returns their number; 0 if
// there are no marks.
int kill_marked(const std::vector<std::string>& marks);

}  // namespace muster::local
