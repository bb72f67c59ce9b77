#pragma once

#include <string>
#include <string_view>

namespace muster {

// Returns "host:port". The host may be a name or an IP address; IPv6 is put in brackets.
std::string join_host_port(std::string_view host, std::string_view port);

// Return the parts of a text "host:port", the host without brackets. A text without a colon is only
// a host; its port is empty.
std::string host_of(std::string_view host_port);
std::string port_of(std::string_view host_port);

}  // namespace muster
