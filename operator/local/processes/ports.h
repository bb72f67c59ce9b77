#pragma once

#include <map>
#include <string>
#include <vector>

namespace muster::local {

// The addresses at which the servers of a job listen, by name: "chief-0" is for the replica's
// peers, "chief-0/http" for /healthz and so on.
struct Addresses {
  std::map<std::string, int> ports;
  std::map<std::string, std::string> hosts;  // IP addresses by replica; if left out: 127.0.0.1

  // Returns "IP:port", or "[IP]:port" of IPv6. Precondition: the name has a port.
  std::string of(const std::string& name) const;
  bool operator==(const Addresses&) const = default;
};

// Returns true if a server could listen on this port of an IP address now. The address "0.0.0.0"
// stands for all of this machine's addresses of IPv4, port 0 for any port. Throws Unavailable if a
// limit of this process does not let it find out.
bool is_port_free(int port, const char* ip = "127.0.0.1");

// Returns `count` ports, in no order, on which a server could listen now at any address. Throws
// Unavailable if fewer are free.
std::vector<int> free_ports(size_t count);

// A changed port: another process held the old one.
struct MovedPort {
  std::string name;
  int from;
  int to;
};

// Chooses ports for the names without a port; the servers of the other names may be running. Throws
// Unavailable if no port is free.
void add_ports(const std::vector<std::string>& names, std::map<std::string, int>& ports);

// Keeps each name's port in `ports` if it is free, else chooses a free one; other names are
// dropped. Chosen ports lie below the range from which the kernel takes the local ports of outgoing
// connections, so that the kernel cannot use them before a server starts. Other `muster run`s on
// this machine do not choose them either, as long as this process lives. Precondition: no server of
// these names runs. Throws Unavailable if no port is free.
std::vector<MovedPort> choose_ports(const std::vector<std::string>& names,
                                    std::map<std::string, int>& ports);

}  // namespace muster::local
