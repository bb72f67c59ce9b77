#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <stdexcept>
#include <string>

#include "common/system/descriptor.h"

namespace muster {

// A listening socket of 127.0.0.1 on a port of the system's choice.
class Listener {
 public:
  Listener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (bind(socket_.get(), generic, size) != 0 || listen(socket_.get(), 8) != 0 ||
        getsockname(socket_.get(), generic, &size) != 0)
      throw std::runtime_error("no free port on 127.0.0.1");
    port_ = ntohs(address.sin_port);
  }
  int accept_one() const { return accept(socket_.get(), nullptr, nullptr); }
  void close_now() { socket_.reset(); }
  int port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  Descriptor socket_;
  int port_ = 0;
};

// Where nobody listens at this moment.
inline int free_port() {
  return Listener().port();
}
inline std::string free_address() {
  return Listener().address();
}

// Returns a socket that is connected to 127.0.0.1; none where nobody listens.
inline Descriptor connect_to(int port) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    socket.reset();
  return socket;
}

// Waits until the other end closes; it must send nothing.
inline bool is_closed(const Descriptor& socket) {
  char byte = 0;
  return recv(socket.get(), &byte, 1, 0) <= 0;
}
// Returns whether the other end has neither closed nor sent anything so far.
inline bool is_open(const Descriptor& socket) {
  char byte = 0;
  return recv(socket.get(), &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN;
}

}  // namespace muster
