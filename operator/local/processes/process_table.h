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
  // Returns nothing if `text` is not of that form.
  static std::optional<ProcessIdentity> parse(const std::string& text);
  // Returns nothing if there is no such process.
  static std::optional<ProcessIdentity> of(pid_t pid);
  bool operator==(const ProcessIdentity&) const = default;
};

// Returns true while exactly this process runs; a zombie has ended.
bool is_alive(const ProcessIdentity& process);

// Returns true while a process of this group runs; zombies have ended.
bool is_group_alive(pid_t group);

// Sends SIGKILL to what is left of the group that `leader` led: to the whole group while the leader
// is alive, else to those members that have `mark` ("NAME=value") in their environment, since the
// group number may belong to other processes by now. Returns how many processes were there.
int kill_group(const ProcessIdentity& leader, const std::string& mark);

// Sends SIGKILL to all other processes that have all of `marks` in their environment: those that a
// replica has started in a group of their own, as torchrun does. Returns how many were there; none
// if there are no marks.
int kill_marked(const std::vector<std::string>& marks);

}  // namespace muster::local
