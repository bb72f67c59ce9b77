#pragma once

#include <map>
#include <string>
#include <vector>

namespace muster::local {

// Returns true if a server could listen on 127.0.0.1:port now.
bool is_port_free(int port);

// A port that another process held, so that another one was chosen for this name.
struct MovedPort {
  std::string name;
  int from;
  int to;
};

// Chooses ports for the names that have none yet; the servers of the other names may run. Throws
// Unavailable if no port is free.
void add_ports(const std::vector<std::string>& names, std::map<std::string, int>& ports);

// Keeps each name's port in `ports` if it is free, else chooses a free one; other names are
// dropped. Chosen ports lie below the range from which the kernel takes the local ports of outgoing
// connections, so that it cannot give them away between now and a server's start. Precondition:
// none of the names' servers runs. Throws Unavailable if no port is free.
std::vector<MovedPort> settle_ports(const std::vector<std::string>& names,
                                    std::map<std::string, int>& ports);

}  // namespace muster::local
