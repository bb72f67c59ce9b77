#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "common/system/descriptor.h"
#include "trainer/group/identity.h"

struct ssl_st;

namespace muster::collective {

// Drops `moved` bytes from the front of `parts`; returns the first part of which something is left.
template <class Parts>
size_t advance(Parts& parts, size_t first, size_t moved) {
  while (moved > 0) {
    iovec& part = parts[first];
    const size_t some = std::min(moved, part.iov_len);
    part.iov_base = static_cast<std::byte*>(part.iov_base) + some;
    part.iov_len -= some;
    moved -= some;
    if (part.iov_len == 0) ++first;
  }
  return first;
}

// One end of a TCP connection that never waits: TLS if there is an identity, else plaintext. Calls
// throw Unavailable with the reason once the connection has ended, or if the peer is not of this
// identity.
class Stream {
 public:
  enum class End { client, server };  // who opened the connection, and who accepted it

  // `socket` is connected and non-blocking.
  Stream(Descriptor socket, const group::Identity& identity, End end);
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;

  // Goes on with TLS's handshake as far as is possible without waiting; returns whether it is done.
  // Nothing can be written or read before.
  bool shake_hands();
  // Returns the events of poll() that the handshake waits for.
  short awaited() const;

  // Returns how many bytes were taken from the beginning of `parts`, which are changed; 0: none for
  // now. With TLS some of them may be kept here: holds() says so, and every call sends what it can.
  size_t write(std::span<iovec> parts);
  bool holds() const { return sent_ < out_.size(); }
  // Returns how many bytes were written to the beginning of `parts`, which are changed; 0: none for
  // now.
  size_t read(std::span<iovec> parts);

  const Descriptor& socket() const { return socket_; }

 private:
  size_t write_tls(std::span<iovec> parts);
  size_t read_tls(std::span<iovec> parts);
  void flush();
  void renew_key(size_t written);
  void check(int result);

  Descriptor socket_;
  std::unique_ptr<ssl_st, void (*)(ssl_st*)> tls_;  // null: plaintext
  size_t written_ = 0;                              // bytes, since the key was renewed
  std::vector<std::byte> out_;                      // records; bytes from sent_ on are to be sent
  size_t sent_ = 0;
};

}  // namespace muster::collective
