#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "operator/local/copy/copy_list.h"

namespace muster::local {

// A machine on which replicas may run.
struct Host {
  std::string name;         // the host's name in messages
  std::string destination;  // the argument of ssh
  std::string address;      // IP address, or a name of one, at which others reach the host
  int slots = 0;            // number of replicas on the host; 0: its number of processors
  std::string muster;       // path of muster on the host
};

// The content of the file for `muster run --hosts`.
struct HostsFile {
  std::vector<Host> hosts;       // at least one, with different names
  std::vector<std::string> ssh;  // the command that reaches a host
  std::vector<CopyPath> copy;    // files and folders to copy to the hosts
  bool copy_muster = false;      // whether muster and muster-trainer are copied to the hosts
};

// Throws Invalid, with every problem and its line.
HostsFile load_hosts(const std::filesystem::path& path);

// Returns the command that runs a command on the host. The host's command is appended as one word,
// which the host's shell splits. ssh gives up after some ten seconds on a host that does not
// answer, and notices as late a host that has stopped answering.
std::vector<std::string> ssh_command(const HostsFile& file, const Host& host);
// Returns the command that runs `muster host <action>` on the host.
std::vector<std::string> remote_command(const HostsFile& file, const Host& host,
                                        const std::string& action);

}  // namespace muster::local
