#pragma once

#include <string>
#include <string_view>

namespace muster::group {

// True for "host:port" with a name or IPv4 address (or "[IPv6]:port") and a port of 1..65535.
bool is_address(std::string_view text);

// Where to listen for peers that reach us as `address`: itself where the host is an IP address or
// localhost; every interface where it is a name, which may not resolve yet.
std::string listening_address(const std::string& address);

// Version of Muster, compared between peers.
std::string version();

}  // namespace muster::group
