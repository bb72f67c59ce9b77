#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace muster::local {

// A machine on which replicas may run.
struct Host {
  std::string name;         // in messages
  std::string destination;  // what ssh is given
  std::string address;      // an IPv4 address, or a name of one: where others reach the host
  int slots = 0;            // how many replicas it takes; 0: as many as it has processors
};

// The content of the file that `muster run --hosts` is given.
struct HostsFile {
  std::vector<Host> hosts;       // at least one; their names differ
  std::vector<std::string> ssh;  // the command that reaches a host
  std::string muster;            // the program on each host
};

// Throws Invalid, with every problem by its line.
HostsFile load_hosts(const std::filesystem::path& path);

// Returns the command that runs `muster host <action>` on the host. It gives up after some ten
// seconds on a host that does not answer, and as late notices one that has stopped answering.
std::vector<std::string> remote_command(const HostsFile& file, const Host& host,
                                        const std::string& action);

}  // namespace muster::local
