#pragma once

#include <map>
#include <string>
#include <vector>

namespace muster::local {

// True if a server could listen on 127.0.0.1:port now.
bool is_port_free(int port);

// A port was somebody else's, and another one was chosen for this name.
struct MovedPort {
  std::string name;
  int from;
  int to;
};

// Chooses ports for those of the names that have none yet; the others' servers may run. Throws
// Unavailable if there are none free.
void add_ports(const std::vector<std::string>& names, std::map<std::string, int>& ports);

// Keeps each name's port in `ports` while it is free, else chooses a free one; names no longer
// wanted are dropped. Chosen ports lie below the range from which the kernel takes the near ends of
// outgoing connections, so that it cannot give them away between now and a server's start.
// Precondition: none of the names' servers runs. Throws Unavailable if there are none free.
std::vector<MovedPort> settle_ports(const std::vector<std::string>& names,
                                    std::map<std::string, int>& ports);

}  // namespace muster::local
