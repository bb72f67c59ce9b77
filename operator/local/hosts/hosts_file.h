#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "operator/local/copy/copy_list.h"

namespace muster::local {

// A machine on which replicas may run.
struct Host {
  std::string name;         // in messages
  std::string destination;  // what ssh is given
  std::string address;      // an IP address, or a name of one: where others reach the host
  int slots = 0;            // how many replicas it takes; 0: as many as it has processors
  std::string muster;       // the program there
};

// The content of the file that `muster run --hosts` is given.
struct HostsFile {
  std::vector<Host> hosts;       // at least one; their names differ
  std::vector<std::string> ssh;  // the command that reaches a host
  std::vector<CopyPath> copy;    // what the hosts are to have as it is here
  bool copy_muster = false;      // whether the hosts get the programs that run here
};

// Throws Invalid, with every problem by its line.
HostsFile load_hosts(const std::filesystem::path& path);

// Returns the command that runs on the host what is appended to it as one word, which the host's
// shell takes apart. It gives up after some ten
// seconds on a host that does not answer, and as late notices one that has stopped answering.
std::vector<std::string> ssh_command(const HostsFile& file, const Host& host);
// Returns the command that runs `muster host <action>` there.
std::vector<std::string> remote_command(const HostsFile& file, const Host& host,
                                        const std::string& action);

}  // namespace muster::local
