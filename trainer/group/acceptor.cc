#include "trainer/group/acceptor.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "common/error.h"
#include "common/net/host_port.h"
#include "common/program/log.h"
#include "common/system/system_words.h"
#include "common/threads/pause.h"
#include "trainer/group/address.h"

namespace muster::group {

namespace {

constexpr std::chrono::milliseconds kPause{100};
// The time between two accepted connections while strangers displace each other, so that a peer of
// the job has time for its handshake.
constexpr std::chrono::milliseconds kCrowded{1};

// The time between two counts of strangers' bytes; a link of 10 Gbit/s carries 12 MB in this time.
constexpr std::chrono::milliseconds kCounted{10};
constexpr std::chrono::minutes kTold{1};

// Returns the number of received bytes.
uint64_t bytes_from(const Descriptor& socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  const bool known = getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
                     size >= offsetof(tcp_info, tcpi_bytes_received) + sizeof(uint64_t);
  return known ? info.tcpi_bytes_received : 0;
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses resolve(const std::string& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host_of(address).c_str(), port_of(address).c_str(), &hints, &found);
  if (error != 0) throw Unavailable(address + ": cannot listen there: " + gai_strerror(error));
  return {found, freeaddrinfo};
}

void set_option(const Descriptor& socket, int level, int name, int value) {
  setsockopt(socket.get(), level, name, &value, sizeof value);
}

// Connections that are accepted have the options of the socket that listened: data are sent at
// once, and [::] takes IPv4 too.
Descriptor listen_at(const addrinfo& address, std::chrono::milliseconds untaken) {
  Descriptor socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return socket;
  set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(untaken.count()));
  if (address.ai_family == AF_INET6) set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (bind(socket.get(), address.ai_addr, address.ai_addrlen) != 0 ||
      listen(socket.get(), SOMAXCONN) != 0)
    socket.reset();
  return socket;
}

// Whether the system does not have the address family; a name like localhost may have such an
// address.
bool is_absent(int error) {
  return error == EAFNOSUPPORT || error == EADDRNOTAVAIL;
}

std::vector<Descriptor> listen_at(const std::string& address, std::chrono::milliseconds untaken) {
  std::vector<Descriptor> listeners;
  const std::string listening = listening_address(address);
  const Addresses addresses = resolve(listening);
  int error = 0;
  for (const addrinfo* one = addresses.get(); one; one = one->ai_next) {
    Descriptor listener = listen_at(*one, untaken);
    if (listener)
      listeners.push_back(std::move(listener));
    else if (error == 0 || is_absent(error))
      error = errno;
  }
  if (listeners.empty() && error == EAFNOSUPPORT && listening.starts_with("[::]"))
    return listen_at(join_host_port("0.0.0.0", port_of(address)), untaken);
  if (listeners.empty() || (error != 0 && !is_absent(error)))
    throw Unavailable(address + ": cannot listen there: " + system_words(error));
  return listeners;
}

// Returns "[fe80::1]:4242" for "ipv6:%5Bfe80::1%25eth0%5D:4242".
std::string plain(const std::string& peer) {
  std::string text;
  for (size_t at = peer.find(':') + 1; at < peer.size(); ++at) {
    const std::string_view rest = std::string_view(peer).substr(at);
    if (rest.starts_with("%25")) {
      at = std::min(peer.find("%5D", at), peer.size()) - 1;
    } else if (rest.starts_with("%5B") || rest.starts_with("%5D")) {
      text += rest[2] == 'B' ? '[' : ']';
      at += 2;
    } else {
      text += peer[at];
    }
  }
  return text;
}

}  // namespace

Acceptor::Acceptor(const std::string& address, const Limits& limits)
    : limits_(limits),
      listeners_(listen_at(address, limits.untaken)),
      waker_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      limit_(limits.strangers) {
  if (!waker_) throw Unavailable("no event can be waited for: " + system_words(errno));
}

Acceptor::~Acceptor() {
  stop();
}

void Acceptor::start(Take take) {
  take_ = std::move(take);
  thread_ = std::thread([this] { run(); });
}

void Acceptor::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  eventfd_write(waker_.get(), 1);
  if (thread_.joinable()) thread_.join();
  listeners_.clear();
}

void Acceptor::welcome(const std::string& peer) {
  const std::string text = plain(peer);
  const MutexLock lock(mutex_);
  const auto found = std::ranges::find_if(
      strangers_, [&](const auto& entry) { return entry.second.peer == text; });
  if (found == strangers_.end()) return;
  limit_.remove(found->first);
  strangers_.erase(found);
}

void Acceptor::run() {
  while (wait()) {
    tell();
    for (const Descriptor& listener : listeners_) accept_from(listener);
  }
}

// Logs the strangers, so that the cluster's administrators see such attempts.
void Acceptor::tell() {
  if (Clock::now() - told_ < kTold) return;
  uint64_t gone = 0;
  std::string last;
  {
    const MutexLock lock(mutex_);
    gone = std::exchange(gone_, 0);
    last = last_gone_;
  }
  if (gone == 0) return;
  told_ = Clock::now();
  log::warning(std::to_string(gone) +
               " connections came to our port and ended without having said "
               "that they are of this job; the last one was from " +
               last);
}

// Waits for something to do, and forgets strangers that have left or whose time is over. Returns
// false when accepting has stopped.
bool Acceptor::wait() {
  std::vector<pollfd> waiting{{waker_.get(), POLLIN, 0}};
  for (const Descriptor& listener : listeners_) waiting.push_back({listener.get(), POLLIN, 0});
  const size_t first = waiting.size();
  std::vector<uint64_t> numbers;
  int left = -1;
  {
    const MutexLock lock(mutex_);
    left = milliseconds_left();
    for (const auto& [number, stranger] : strangers_) {
      waiting.push_back({stranger.socket.get(), 0, 0});  // poll() reports its end without a request
      numbers.push_back(number);
    }
  }
  poll(waiting.data(), waiting.size(), left);
  const MutexLock lock(mutex_);
  for (size_t i = 0; i < numbers.size(); ++i)
    if (waiting[first + i].revents != 0) dismiss(numbers[i]);
  while (!strangers_.empty() && strangers_.begin()->second.until <= Clock::now())
    dismiss(strangers_.begin()->first);
  dismiss_greedy();
  return !stopping_;
}

// gRPC limits each message, but neither the headers before it nor all messages together.
void Acceptor::dismiss_greedy() {
  std::vector<std::pair<uint64_t, uint64_t>> sent;  // bytes, number
  uint64_t all = 0;
  for (const auto& [number, stranger] : strangers_) {
    sent.emplace_back(bytes_from(stranger.socket), number);
    all += sent.back().first;
  }
  std::ranges::sort(sent, std::greater());
  for (const auto& [bytes, number] : sent) {
    if (bytes <= limits_.bytes_of_one && all <= limits_.bytes_of_all) return;
    all -= bytes;
    dismiss(number);
  }
}

// Returns how long to wait at most; -1: there is no stranger.
int Acceptor::milliseconds_left() const {
  if (strangers_.empty()) return -1;
  constexpr int kMost = kCounted.count();
  return std::min(kMost, milliseconds_until(strangers_.begin()->second.until));
}

// Accepts one connection. Strangers that have left are forgotten before the next one; otherwise one
// of them would be counted, and another stranger would be disconnected instead.
void Acceptor::accept_from(const Descriptor& listener) {
  Descriptor socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket) return admit(std::move(socket));
  // Most likely there are no descriptors left; they become free when other peers have left.
  if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
    std::this_thread::sleep_for(kPause);
}

void Acceptor::admit(Descriptor socket) {
  const PeerAddress peer = peer_address(socket.get());
  Descriptor second(fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
  if (peer.host.empty() || !second) return;
  bool crowded = false;
  {
    const MutexLock lock(mutex_);
    const uint64_t number = next_++;
    strangers_[number] = {std::move(second), to_text(peer), Clock::now() + limits_.patience};
    if (const auto excess = limit_.add(number, peer.host)) {
      dismiss(*excess);
      crowded = true;
    }
  }
  take_(std::move(socket));
  if (crowded) std::this_thread::sleep_for(kCrowded);
}

// Ends a stranger's connection, if it has not ended.
void Acceptor::dismiss(uint64_t number) {
  const auto found = strangers_.find(number);
  if (found == strangers_.end()) return;
  shutdown(found->second.socket.get(), SHUT_RDWR);
  ++gone_;
  last_gone_ = found->second.peer;
  limit_.remove(number);
  strangers_.erase(found);
}

}  // namespace muster::group
