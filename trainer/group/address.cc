#include "trainer/group/address.h"

#include <arpa/inet.h>

#include "common/net/host_port.h"
#include "common/text/whole_number.h"

namespace muster::group {

bool is_address(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || text.size() > 300) return false;
  const std::string_view port = text.substr(colon + 1);
  if (!whole_number<int>(port, 1, 65535)) return false;
  std::string_view host = text.substr(0, colon);
  if (host.front() == '[') {
    const std::string inner(host.substr(1, host.size() - 2));
    in6_addr parsed;
    return host.back() == ']' && inet_pton(AF_INET6, inner.c_str(), &parsed) == 1;
  }
  for (const char c : host)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
          c == '.' || c == '_'))
      return false;
  return true;
}

bool is_ip(const std::string& text) {
  in6_addr parsed;
  return inet_pton(AF_INET, text.c_str(), &parsed) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &parsed) == 1;
}

std::string listening_address(const std::string& address) {
  const std::string host = host_of(address);
  if (host == "localhost" || is_ip(host)) return address;
  return join_host_port("::", port_of(address));
}

std::string address_at(const std::string& address, const std::string& ip) {
  return join_host_port(ip, port_of(address));
}

std::optional<PortRange> port_range(std::string_view text) {
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = whole_number<int>(text.substr(0, dash), 1, 65535);
  const auto last = whole_number<int>(text.substr(dash + 1), 1, 65535);
  if (!first || !last || *last < *first) return std::nullopt;
  return PortRange{*first, *last};
}

std::string version() {
  return MUSTER_VERSION;
}

}  // namespace muster::group
