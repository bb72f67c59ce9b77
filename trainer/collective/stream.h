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

// Drops `moved` bytes from the front of `parts`; returns the index of the first part that is not
// empty.
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

// One end of a TCP connection, whose calls never wait: TLS with an identity, else plaintext. Calls
// throw Unavailable with the reason once the connection has ended, or if the peer does not have
// this identity.
class Stream {
 public:
  enum class End { client, server };  // client: opened the connection; server: accepted it

  // `socket` is connected and non-blocking.
  Stream(Descriptor socket, const group::Identity& identity, End end);
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;

  // Continues TLS's handshake as far as possible without waiting; returns whether it is done.
  // Nothing can be written or read before it is done.
  bool shake_hands();
  // Returns the events of poll() that the handshake waits for.
  short awaited() const;

  // Returns the number of bytes taken from the beginning of `parts`, which are changed; 0: none for
  // now. With TLS some bytes may be kept in the stream (see holds()); every call sends as many of
  // them as it can.
  size_t write(std::span<iovec> parts);
  bool holds() const { return sent_ < out_.size(); }
  // Returns the number of bytes written to the beginning of `parts`, which are changed; 0: none for
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
  size_t written_ = 0;                              // bytes since the key was renewed
  std::vector<std::byte> out_;  // records; the bytes from sent_ on are still to be sent
  size_t sent_ = 0;
};

}  // namespace muster::collective
