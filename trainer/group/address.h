#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::group {

// Returns true for "host:port" with a name or IPv4 address (or "[IPv6]:port") and a port of
// 1..65535.
bool is_address(std::string_view text);

// Returns the address to listen on for peers that connect to `address`: `address` itself if its
// host is an IP address or localhost; all interfaces if the host is a name, which may not resolve
// yet.
std::string listening_address(const std::string& address);

// Returns `address` with the IP address `ip`, of either family, in place of its host.
std::string address_at(const std::string& address, const std::string& ip);

// Returns true for an IPv4 or IPv6 address, without brackets or a port.
bool is_ip(const std::string& text);

// The ports from which a process takes a free one to listen on.
struct PortRange {
  int first = 0;  // 0: any free port
  int last = 0;   // at least `first`
  bool operator==(const PortRange&) const = default;
};

// Returns the range in a text like "2223-2254"; nothing for any other text, and for ports that are
// not from 1 to 65535 in rising order.
std::optional<PortRange> port_range(std::string_view text);

// Returns the version of Muster, which is compared between peers.
std::string version();

}  // namespace muster::group
