#include "trainer/collective/stream.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "common/error.h"
#include "common/system_words.h"

namespace muster::collective {

namespace {

constexpr size_t kRecord = 16 << 10;  // bytes, the most that one record of TLS has
// RFC 8446, 5.5: one key of AES-GCM protects no more than 2^24.5 records.
constexpr size_t kBytesOfAKey = size_t{1} << 37;
constexpr char kClosed[] = "it was closed";

bool is_momentary(int error) {
  return error == EAGAIN || error == EINTR;
}

// Returns the memory with what the next record has: that of the first part, or a copy of several.
std::span<const std::byte> next_record(std::span<const iovec> parts,
                                       std::array<std::byte, kRecord>& copy) {
  const auto* begin = static_cast<const std::byte*>(parts[0].iov_base);
  if (parts.size() == 1 || parts[0].iov_len >= kRecord)
    return {begin, std::min(parts[0].iov_len, kRecord)};
  size_t size = 0;
  for (const iovec& part : parts) {
    const size_t some = std::min(part.iov_len, kRecord - size);
    std::memcpy(copy.data() + size, part.iov_base, some);
    size += some;
  }
  return {copy.data(), size};
}

}  // namespace

Stream::Stream(Descriptor socket, const group::Identity& identity, End end)
    : socket_(std::move(socket)), tls_(nullptr, SSL_free) {
  if (!identity) return;
  tls_.reset(SSL_new(identity.context()));
  if (!tls_ || SSL_set_fd(tls_.get(), socket_.get()) != 1)
    throw Unavailable("OpenSSL has no memory for a connection");
  if (end == End::client)
    SSL_set_connect_state(tls_.get());
  else
    SSL_set_accept_state(tls_.get());
}

bool Stream::shake_hands() {
  if (!tls_ || SSL_is_init_finished(tls_.get())) return true;
  ERR_clear_error();
  const int result = SSL_do_handshake(tls_.get());
  if (result == 1) return true;
  check(result);
  return false;
}

short Stream::awaited() const {
  return tls_ && SSL_want_write(tls_.get()) ? POLLOUT : POLLIN;
}

// Throws if a call has failed for another reason than that it would have to wait.
void Stream::check(int result) {
  switch (SSL_get_error(tls_.get(), result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return;
    case SSL_ERROR_ZERO_RETURN:
      throw Unavailable(kClosed);
    case SSL_ERROR_SYSCALL:
      throw Unavailable(errno == 0 ? kClosed : system_words(errno));
    default:
      break;
  }
  const unsigned long error = ERR_peek_last_error();
  if (ERR_GET_REASON(error) == SSL_R_UNEXPECTED_EOF_WHILE_READING) throw Unavailable(kClosed);
  const char* reason = ERR_reason_error_string(error);
  throw Unavailable(std::string("TLS has failed: ") + (reason ? reason : "no reason is known"));
}

size_t Stream::write(std::span<iovec> parts) {
  if (parts.empty()) return 0;
  if (tls_) return write_tls(parts);
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  const ssize_t moved = sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
  if (moved >= 0) return static_cast<size_t>(moved);
  if (is_momentary(errno)) return 0;
  throw Unavailable(system_words(errno));
}

size_t Stream::read(std::span<iovec> parts) {
  if (parts.empty()) return 0;
  if (tls_) return read_tls(parts);
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  const ssize_t moved = recvmsg(socket_.get(), &message, 0);
  if (moved > 0) return static_cast<size_t>(moved);
  if (moved < 0 && is_momentary(errno)) return 0;
  throw Unavailable(moved == 0 ? kClosed : system_words(errno));
}

// A record that could not be sent is kept by OpenSSL, which wants to be given its content again.
size_t Stream::write_tls(std::span<iovec> parts) {
  std::array<std::byte, kRecord> copy;
  size_t total = 0;
  for (size_t first = 0; first < parts.size();) {
    const auto record = next_record(parts.subspan(first), copy);
    size_t moved = 0;
    ERR_clear_error();
    errno = 0;
    if (const int result = SSL_write_ex(tls_.get(), record.data(), record.size(), &moved);
        result != 1) {
      check(result);
      break;
    }
    total += moved;
    first = advance(parts, first, moved);
  }
  renew_key(total);
  return total;
}

size_t Stream::read_tls(std::span<iovec> parts) {
  size_t total = 0;
  for (size_t first = 0; first < parts.size();) {
    size_t moved = 0;
    ERR_clear_error();
    errno = 0;
    const int result = SSL_read_ex(tls_.get(), parts[first].iov_base, parts[first].iov_len, &moved);
    if (result != 1) {
      if (total == 0) check(result);  // else the next call finds the same
      break;
    }
    total += moved;
    first = advance(parts, first, moved);
  }
  return total;
}

void Stream::renew_key(size_t written) {
  written_ += written;
  if (written_ < kBytesOfAKey) return;
  if (SSL_key_update(tls_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1) written_ = 0;
}

}  // namespace muster::collective
