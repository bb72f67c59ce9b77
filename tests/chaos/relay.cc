#include "tests/chaos/relay.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace muster::chaos {

namespace {

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

void send_at_once(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int connect_to(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  ::close(fd);
  return -1;
}

// Both directions of one connection. What one end does not take is not read from the other: the
// sender feels it.
struct Pipe {
  int ends[2];
  std::vector<char> waiting[2];  // to be written to ends[i]
  bool broken = false;

  void pump(int from, short events) {
    const int to = 1 - from;
    if (events & (POLLIN | POLLHUP | POLLERR) && waiting[to].empty()) {
      char bytes[65536];
      const ssize_t got = ::recv(ends[from], bytes, sizeof bytes, MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EAGAIN)) broken = true;
      if (got > 0) waiting[to].assign(bytes, bytes + got);
    }
    flush(to);
  }
  void flush(int to) {
    if (waiting[to].empty()) return;
    const ssize_t sent =
        ::send(ends[to], waiting[to].data(), waiting[to].size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) broken = true;
    if (sent > 0) waiting[to].erase(waiting[to].begin(), waiting[to].begin() + sent);
  }
  short interest(int end) const {
    return static_cast<short>((waiting[1 - end].empty() ? POLLIN : 0) |
                              (waiting[end].empty() ? 0 : POLLOUT));
  }
};

}  // namespace

Relay::Relay(int target) : target_(target) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::runtime_error("a relay cannot listen");
  port_ = ntohs(address.sin_port);
  thread_ = std::jthread([this](std::stop_token stop) { run(stop); });
}

Relay::~Relay() {
  thread_.request_stop();
  thread_.join();
  ::close(listener_);
}

void Relay::run(std::stop_token stop) {
  std::vector<Pipe> pipes;
  while (!stop.stop_requested()) {
    std::vector<pollfd> watched = {{listener_, POLLIN, 0}};
    for (const Pipe& pipe : pipes)
      for (const int end : {0, 1}) watched.push_back({pipe.ends[end], pipe.interest(end), 0});
    ::poll(watched.data(), watched.size(), 50);
    for (size_t i = 0; i < pipes.size(); ++i)
      for (const int end : {0, 1})
        pipes[i].pump(end, watched[1 + 2 * i + static_cast<size_t>(end)].revents);
    std::erase_if(pipes, [](const Pipe& pipe) {
      if (pipe.broken)
        for (const int end : pipe.ends) ::close(end);
      return pipe.broken;
    });
    if (!(watched[0].revents & POLLIN)) continue;
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const int server = client < 0 ? -1 : connect_to(target_);
    if (server >= 0) {
      for (const int end : {client, server}) send_at_once(end);
      pipes.push_back({{client, server}, {}});
    } else if (client >= 0) {
      ::close(client);
    }
  }
  for (const Pipe& pipe : pipes)
    for (const int end : pipe.ends) ::close(end);
}

}  // namespace muster::chaos
