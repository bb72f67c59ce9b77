#include "common/net/connection_limit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

#include "common/net/host_port.h"

namespace muster {

std::optional<uint64_t> ConnectionLimit::add(uint64_t number, const std::string& address) {
  connections_.push_back({number, address});
  if (++counts_[address] > most_.of_address) return remove_oldest_of(address);
  if (connections_.size() > most_.in_all) return remove_oldest_of(fullest());
  return std::nullopt;
}

void ConnectionLimit::remove(uint64_t number) {
  const auto found = std::ranges::find(connections_, number, &Connection::number);
  if (found != connections_.end()) erase(found);
}

// Returns the address that has the most connections. Precondition: there are some.
std::string ConnectionLimit::fullest() const {
  return std::ranges::max_element(counts_, {}, [](const auto& entry) { return entry.second; })
      ->first;
}

uint64_t ConnectionLimit::remove_oldest_of(const std::string& address) {
  const auto oldest = std::ranges::find(connections_, address, &Connection::address);
  const uint64_t number = oldest->number;
  erase(oldest);
  return number;
}

void ConnectionLimit::erase(const std::deque<Connection>::iterator& connection) {
  const auto count = counts_.find(connection->address);
  if (--count->second == 0) counts_.erase(count);
  connections_.erase(connection);
}

PeerAddress peer_address(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char text[INET6_ADDRSTRLEN] = "";
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  if (address.ss_family == AF_INET) {
    const auto& ip = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &ip.sin_addr, text, sizeof text);
    return {text, ntohs(ip.sin_port)};
  }
  if (address.ss_family != AF_INET6) return {};
  const auto& ip = reinterpret_cast<const sockaddr_in6&>(address);
  if (IN6_IS_ADDR_V4MAPPED(&ip.sin6_addr))
    inet_ntop(AF_INET, &ip.sin6_addr.s6_addr[12], text, sizeof text);
  else
    inet_ntop(AF_INET6, &ip.sin6_addr, text, sizeof text);
  return {text, ntohs(ip.sin6_port)};
}

std::string to_text(const PeerAddress& address) {
  return join_host_port(address.host, std::to_string(address.port));
}

}  // namespace muster
