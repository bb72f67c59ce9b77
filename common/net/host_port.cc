#include "common/net/host_port.h"

namespace muster {

std::string join_host_port(std::string_view host, std::string_view port) {
  const bool bracketed = host.find(':') != std::string_view::npos;
  std::string text;
  text.append(bracketed ? "[" : "").append(host).append(bracketed ? "]:" : ":").append(port);
  return text;
}

std::string host_of(std::string_view host_port) {
  std::string_view host = host_port.substr(0, host_port.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return std::string(host);
}

std::string port_of(std::string_view host_port) {
  const size_t colon = host_port.rfind(':');
  return colon == std::string_view::npos ? "" : std::string(host_port.substr(colon + 1));
}

}  // namespace muster
