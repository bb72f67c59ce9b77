#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

namespace muster {

// Decides which connections of a port must end, so that there are never too many of one address or
// in all. Who makes many connections loses its own: of an address with too many the oldest ends,
// and where there are too many in all, the oldest of the address that has the most. Not
// thread-safe.
class ConnectionLimit {
 public:
  struct Most {
    size_t of_address;
    size_t in_all;
  };

  explicit ConnectionLimit(Most most) : most_(most) {}

  // Notes a connection, by a number that no other connection has. Returns the number of the
  // connection that must end now, which is no longer noted; nothing if there is room for all.
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
  std::map<std::string, size_t> counts_;  // of them, by address
};

// The other end of a connection: an IP address as text (IPv4 also where it came by IPv6), and a
// port. Empty and 0 if `socket` is not connected by IP.
struct PeerAddress {
  std::string host;
  uint16_t port = 0;
};
PeerAddress peer_address(int socket);
// Returns "10.0.0.1:4242" or "[fd00::1]:4242".
std::string to_text(const PeerAddress& address);

}  // namespace muster
