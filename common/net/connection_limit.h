#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

namespace muster {

// Decides which connections of a port must end, so that there are never too many from one address
// or in all. A peer that makes many connections loses its own: if an address has too many, its
// oldest connection ends; if there are too many in all, the oldest connection of the address with
// the most connections ends. Not thread-safe.
class ConnectionLimit {
 public:
  struct Most {
    size_t of_address;
    size_t in_all;
  };

  explicit ConnectionLimit(Most most) : most_(most) {}

  // Notes a connection by a unique number. Returns the number of the connection that must end now,
  // which is then no longer noted; nothing if there is room for all.
  std::optional<uint64_t> add(uint64_t number, const std::string& address);
  void remove(uint64_t number);

 private:
  struct Connection {
    uint64_t number;
    std::string address;
  };

  std::string fullest() const;
  uint64_t remove_oldest_of(const std::string& address);
  void erase(const std::deque<Connection>::iterator& connection);

  const Most most_;
  std::deque<Connection> connections_;    // the oldest first
  std::map<std::string, size_t> counts_;  // number of connections by address
};

// The other end of a connection: an IP address as text (an IPv4 address is shown as IPv4 also on an
// IPv6 socket), and a port. Empty and 0 if `socket` is not connected by IP.
struct PeerAddress {
  std::string host;
  uint16_t port = 0;
};
PeerAddress peer_address(int socket);
// Returns "10.0.0.1:4242" or "[fd00::1]:4242".
std::string to_text(const PeerAddress& address);

}  // namespace muster
