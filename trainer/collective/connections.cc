#include "trainer/collective/connections.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "common/digest.h"
#include "common/random.h"
#include "common/system/system_words.h"
#include "proto/muster/rendezvous.pb.h"

namespace muster::collective {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

namespace {

constexpr milliseconds kGlance{20};
constexpr size_t kMostParts = 64;  // most parts for one system call

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses resolve(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(host.c_str(), port.empty() ? nullptr : port.c_str(), &hints, &found);
  if (error != 0) throw Unavailable(host + ": " + gai_strerror(error));
  return {found, freeaddrinfo};
}

Descriptor make_socket(const addrinfo& address, int flags) {
  return Descriptor(
      ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | flags, address.ai_protocol));
}

uint16_t port_of(const Descriptor& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

// Makes the socket send data at once.
void hurry(const Descriptor& socket) {
  const int on = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// Breaks the connection if sent data are not accepted for longer than a lossy link should need.
// Otherwise the kernel would retry for a quarter of an hour, ever less often, and so notice a
// repaired link up to two minutes late. From here on a member must always read. The rendezvous
// notices a lost member earlier than this.
void limit(const Descriptor& socket) {
  const auto most = static_cast<unsigned>(Connections::kUntaken.count());
  setsockopt(socket.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &most, sizeof most);
}

// Returns a socket that listens on `host` and `port`; or one without a descriptor, with `error`
// set.
Descriptor try_to_listen(const std::string& host, int port, int& error) {
  const Addresses addresses = resolve(host, std::to_string(port));
  Descriptor socket = make_socket(*addresses, SOCK_NONBLOCK);
  // Connections of an earlier generation must not block a given port. For port 0 the option would
  // allow the system to choose a port that another process is about to listen on.
  const int reuse = port != 0 ? 1 : 0;
  if (socket && setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse) == 0 &&
      bind(socket.get(), addresses->ai_addr, addresses->ai_addrlen) == 0 &&
      listen(socket.get(), SOMAXCONN) == 0)
    return socket;
  error = errno;
  return Descriptor();
}

Descriptor listen_at(const std::string& host, const group::PortRange& ports) {
  int error = 0;
  for (int port = ports.first; port <= ports.last; ++port) {
    Descriptor socket = try_to_listen(host, port, error);
    if (socket) return socket;
    if (error != EADDRINUSE) break;
  }
  std::string where = host;
  if (ports.first != 0)
    where += ", ports " + std::to_string(ports.first) + "-" + std::to_string(ports.last);
  throw Unavailable("no member can be listened for at " + where + ": " + system_words(error));
}

uint32_t add(const iovec& part, uint32_t crc) {
  return crc32c({static_cast<const std::byte*>(part.iov_base), part.iov_len}, crc);
}

bool wait_for(const Descriptor& socket, short events, milliseconds most) {
  pollfd one{socket.get(), events, 0};
  return poll(&one, 1, static_cast<int>(most.count())) > 0;
}

}  // namespace

Connections::Header Connections::Header::of(Frame frame) {
  return {frame, crc32c(std::as_bytes(std::span(&frame, 1)))};
}

Connections::Connections(int member, int members, const std::string& host,
                         const group::PortRange& ports, group::Identity identity)
    : member_(member),
      members_(members),
      identity_(std::move(identity)),
      checks_(!identity_),
      waker_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      peers_(static_cast<size_t>(members)) {
  if (!waker_) throw Unavailable("no event can be waited for: " + system_words(errno));
  for (int i = 0; i < members; ++i)
    peers_[static_cast<size_t>(i)].name = "member " + std::to_string(i);
  listener_ = listen_at(host, ports);
  WireEndpoint endpoint;
  endpoint.set_host(host);
  endpoint.set_port(port_of(listener_));
  endpoint.set_word(random_number());
  endpoint_ = endpoint.SerializeAsString();
}

void Connections::fail(const Peer& peer, const std::string& why) const {
  throw Broken("the connection to " + peer.name + ": " + why);
}

// Returns the result of a call on the peer's stream; an error names the peer.
template <class Call>
auto Connections::on_stream(const Peer& peer, const Call& call) const {
  try {
    return call();
  } catch (const Unavailable& error) {
    fail(peer, error.what());
  }
}

// Each member connects to the members before it and accepts connections from those after it.
void Connections::connect(const std::vector<std::string>& endpoints,
                          const std::function<bool()>& over) {
  require_open();
  for (int peer = 0; peer < member_; ++peer)
    dial(peer, endpoints.at(static_cast<size_t>(peer)), over);
  const auto connected = [this] {
    return std::all_of(peers_.begin() + member_ + 1, peers_.end(),
                       [](const Peer& peer) { return peer.stream.has_value(); });
  };
  WireEndpoint own;
  own.ParseFromString(endpoint_);
  Admission admission(std::move(listener_), identity_);
  while (!connected()) {
    if (over()) throw Broken("not all members have connected in time");
    if (auto admitted = admission.next(kGlance)) admit(*admitted, own.word());
  }
  for (const Peer& peer : peers_)
    if (peer.stream) limit(peer.stream->socket());
}

void Connections::dial(int index, const std::string& text, const std::function<bool()>& over) {
  Peer& peer = peers_[static_cast<size_t>(index)];
  WireEndpoint endpoint;
  if (!endpoint.ParseFromString(text) || endpoint.host().empty() || endpoint.port() == 0 ||
      endpoint.port() > 65535)
    fail(peer, "expected the address where it listens, found " + std::to_string(text.size()) +
                   " bytes of something else");
  const std::string port = std::to_string(endpoint.port());
  peer.name += " (" + endpoint.host() + ":" + port + ")";
  Addresses addresses(nullptr, freeaddrinfo);
  try {
    addresses = resolve(endpoint.host(), port);
  } catch (const Unavailable& error) {
    fail(peer, error.what());
  }
  Descriptor socket = make_socket(*addresses, SOCK_NONBLOCK);
  if (!socket) fail(peer, system_words(errno));
  if (::connect(socket.get(), addresses->ai_addr, addresses->ai_addrlen) != 0) {
    if (errno != EINPROGRESS) fail(peer, system_words(errno));
    while (!wait_for(socket, POLLOUT, kGlance))
      if (over()) fail(peer, "it has not answered in time");
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) fail(peer, system_words(error));
  }
  hurry(socket);
  const Greeting greeting{endpoint.word(), static_cast<uint32_t>(member_),
                          static_cast<uint32_t>(members_)};
  peer.stream.emplace(std::move(socket), identity_, Stream::End::client);
  shake_hands(peer, over);
  iovec part{const_cast<Greeting*>(&greeting), sizeof greeting};
  if (on_stream(peer, [&] { return peer.stream->write({&part, 1}); }) != sizeof greeting)
    fail(peer, "it does not accept the first bytes");
}

void Connections::shake_hands(Peer& peer, const std::function<bool()>& over) {
  while (!on_stream(peer, [&] { return peer.stream->shake_hands(); })) {
    if (!wait_for(peer.stream->socket(), peer.stream->awaited(), kGlance) && over())
      fail(peer, "it has not answered in time");
  }
}

// Keeps the connection of a member of this group; drops any other.
void Connections::admit(Admission::Admitted& admitted, uint64_t word) {
  const Greeting& greeting = admitted.greeting;
  const auto index = static_cast<int>(greeting.member);
  if (greeting.word != word || greeting.members != static_cast<uint32_t>(members_) ||
      index <= member_ || index >= members_)
    return;
  hurry(admitted.stream.socket());
  peers_[static_cast<size_t>(index)].stream = std::move(admitted.stream);
}

void Connections::close() {
  closed_ = true;
  listener_.reset();
  for (Peer& peer : peers_) peer.stream.reset();
}

void Connections::require_open() const {
  if (closed_) throw Broken("the connections to other members are closed");
}

void Connections::on_frame(Destination destination, Received received) {
  destination_ = std::move(destination);
  received_ = std::move(received);
}

void Connections::send(std::span<const int> peers, Frame frame, std::span<const iovec> parts) {
  require_open();
  const Header header = Header::of(frame);
  uint32_t crc = header.check;
  for (size_t i = 0; i < parts.size() && checks_ && !peers.empty(); ++i) crc = add(parts[i], crc);
  for (const int index : peers) {
    Peer& peer = peers_[static_cast<size_t>(index)];
    if (peer.out.empty()) peer.frames.clear();
    Sent& sent = peer.frames.emplace_back(Sent{header, crc});
    peer.out.push_back({&sent.header, sizeof sent.header});
    for (const iovec& part : parts)
      if (part.iov_len > 0) peer.out.push_back(part);
    if (checks_) peer.out.push_back({&sent.crc, sizeof sent.crc});
  }
}

bool Connections::sent() const {
  return std::all_of(peers_.begin(), peers_.end(),
                     [](const Peer& peer) { return !peer.has_more(); });
}

bool Connections::write_some(Peer& peer) {
  if (!peer.has_more()) return false;
  iovec parts[kMostParts];
  const size_t count = std::min(kMostParts, peer.out.size());
  std::copy_n(peer.out.begin(), count, parts);
  const size_t moved = on_stream(peer, [&] { return peer.stream->write({parts, count}); });
  moved_ += moved;
  const size_t done = advance(peer.out, 0, moved);
  peer.out.erase(peer.out.begin(), peer.out.begin() + static_cast<std::ptrdiff_t>(done));
  return moved > 0;
}

void Connections::begin_content(int index, Peer& peer) {
  if (peer.header.check != Header::of(peer.header.frame).check)
    fail(peer, "expected a frame, found bytes that were damaged in transit");
  const auto parts = destination_(index, peer.header.frame);
  peer.in.assign(parts.begin(), parts.end());
  std::erase_if(peer.in, [](const iovec& part) { return part.iov_len == 0; });
  peer.next = 0;
  peer.receiving = true;
  if (!checks_) return;
  peer.crc = peer.header.check;
  peer.in.push_back({&peer.received_crc, sizeof peer.received_crc});
}

// Continues with the content after the `moved` bytes that were read.
void Connections::take_content(Peer& peer, size_t moved) {
  size_t left = checks_ ? moved : 0;
  for (size_t i = peer.next; left > 0 && i + 1 < peer.in.size(); ++i) {
    const iovec read{peer.in[i].iov_base, std::min(left, peer.in[i].iov_len)};
    peer.crc = add(read, peer.crc);
    left -= read.iov_len;
  }
  peer.next = advance(peer.in, peer.next, moved);
}

void Connections::end_content(int index, Peer& peer) {
  if (checks_ && peer.received_crc != peer.crc)
    fail(peer, fmt::format("expected a frame with the CRC-32C {:08x}, found {:08x}: it was damaged "
                           "on its way",
                           peer.received_crc, peer.crc));
  peer.receiving = false;
  peer.header_read = 0;
  received_(index, peer.header.frame);
}

// Reads the rest of a frame's content and, in the same call, the beginning of the next frame.
bool Connections::read_some(int index, Peer& peer) {
  iovec parts[kMostParts];
  const size_t left = std::min(kMostParts - 1, peer.in.size() - peer.next);
  if (!peer.receiving)
    parts[0] = {reinterpret_cast<std::byte*>(&peer.header) + peer.header_read,
                sizeof(Header) - peer.header_read};
  else
    std::copy_n(peer.in.begin() + static_cast<std::ptrdiff_t>(peer.next), left, parts);
  const size_t count = peer.receiving ? left : 1;
  size_t moved = 0;
  if (count > 0) {
    moved = on_stream(peer, [&] { return peer.stream->read({parts, count}); });
    if (moved == 0) return false;
    moved_ += moved;
  }
  if (!peer.receiving) {
    peer.header_read += moved;
    if (peer.header_read == sizeof(Header)) begin_content(index, peer);
  } else {
    take_content(peer, moved);
  }
  if (peer.receiving && peer.next == peer.in.size()) end_content(index, peer);
  return true;
}

bool Connections::move(int index) {
  Peer& peer = peers_[static_cast<size_t>(index)];
  if (!peer.stream) return false;
  const bool wrote = write_some(peer);
  return read_some(index, peer) || wrote;
}

void Connections::progress() {
  require_open();
  for (bool moved = true; moved;) {
    moved = false;
    for (int peer = 0; peer < members_; ++peer) moved |= move(peer);
  }
}

void Connections::wake() {
  eventfd_write(waker_.get(), 1);
}

void Connections::await_wake(milliseconds most) {
  pollfd waiting{waker_.get(), POLLIN, 0};
  poll(&waiting, 1, static_cast<int>(most.count()));
  eventfd_t count = 0;
  eventfd_read(waker_.get(), &count);
}

void Connections::poll_all(milliseconds most) {
  std::vector<pollfd> waiting{{waker_.get(), POLLIN, 0}};
  for (const Peer& peer : peers_) {
    if (!peer.stream) continue;
    const short out = peer.has_more() ? POLLOUT : 0;
    waiting.push_back({peer.stream->socket().get(), static_cast<short>(POLLIN | out), 0});
  }
  poll(waiting.data(), waiting.size(), static_cast<int>(most.count()));
  eventfd_t count = 0;
  if (waiting[0].revents != 0) eventfd_read(waker_.get(), &count);
}

void Connections::wait(const std::function<bool()>& ready, const std::function<bool()>& over) {
  require_open();
  auto look = Clock::now() + kGlance;
  for (;;) {
    bool moved = false;
    for (int peer = 0; peer < members_ && !ready(); ++peer) moved |= move(peer);
    if (ready()) return;
    if (moved) continue;
    poll_all(kGlance);
    if (Clock::now() < look) continue;
    if (over()) throw Broken("the generation is over");
    look = Clock::now() + kGlance;
  }
}

}  // namespace muster::collective
