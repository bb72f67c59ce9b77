#pragma once

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <stdexcept>
#include <string>

#include "common/system/descriptor.h"

namespace muster {

// Two connected sockets. One listens at an IP address of this machine; if that is of IPv6, it takes
// IPv4 too.
class ConnectedPair {
 public:
  explicit ConnectedPair(const std::string& host) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST;
    addrinfo* found = nullptr;
    if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0)
      throw std::runtime_error(host + " is no address");
    const Descriptor listener(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    connected_ = Descriptor(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    const bool listens = bind(listener.get(), found->ai_addr, found->ai_addrlen) == 0 &&
                         listen(listener.get(), 1) == 0 &&
                         getsockname(listener.get(), generic, &size) == 0;
    freeaddrinfo(found);
    if (!listens || connect(connected_.get(), generic, size) != 0)
      throw std::runtime_error("nobody can connect to " + host);
    accepted_ = Descriptor(accept(listener.get(), nullptr, nullptr));
    getsockname(connected_.get(), generic, &size);
    port_ =
        ntohs(address.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(address).sin_port
                                           : reinterpret_cast<sockaddr_in6&>(address).sin6_port);
  }
  int accepted() const { return accepted_.get(); }
  int connected_port() const { return port_; }

 private:
  Descriptor connected_;
  Descriptor accepted_;
  int port_ = 0;
};

}  // namespace muster
