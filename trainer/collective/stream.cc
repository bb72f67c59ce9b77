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
#include "common/system/system_words.h"

namespace muster::collective {

namespace {

constexpr size_t kRecord = 16 << 10;  // most bytes in one record of TLS
// RFC 8446, 5.5: one key of AES-GCM protects no more than 2^24.5 records.
constexpr size_t kBytesOfAKey = size_t{1} << 37;
constexpr size_t kMostHeld = 256 << 10;  // most bytes of records that are kept to be sent together
constexpr char kClosed[] = "it was closed";

bool is_momentary(int error) {
  return error == EAGAIN || error == EINTR;
}

// Returns the memory with the content of the next record: the first part, or a copy of several
// parts.
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

// Collects OpenSSL's output, record by record, so that one system call sends many records.
int collect(BIO* bio, const char* bytes, int size) {
  auto* out = static_cast<std::vector<std::byte>*>(BIO_get_data(bio));
  const auto* begin = reinterpret_cast<const std::byte*>(bytes);
  out->insert(out->end(), begin, begin + size);
  return size;
}

BIO_METHOD* collector() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "collector");
    BIO_meth_set_write(made, collect);
    BIO_meth_set_ctrl(made, [](BIO*, int command, long, void*) -> long {
      return command == BIO_CTRL_FLUSH ? 1 : 0;
    });
    return made;
  }();
  return method;
}

}  // namespace

Stream::Stream(Descriptor socket, const group::Identity& identity, End end)
    : socket_(std::move(socket)), tls_(nullptr, SSL_free) {
  if (!identity) return;
  tls_.reset(SSL_new(identity.context()));
  BIO* reader = BIO_new_socket(socket_.get(), BIO_NOCLOSE);
  BIO* writer = BIO_new(collector());
  if (!tls_ || !reader || !writer) throw Unavailable("OpenSSL has no memory for a connection");
  BIO_set_data(writer, &out_);
  BIO_set_init(writer, 1);
  SSL_set_bio(tls_.get(), reader, writer);
  if (end == End::client)
    SSL_set_connect_state(tls_.get());
  else
    SSL_set_accept_state(tls_.get());
}

Stream::Stream(Stream&& other) noexcept : tls_(nullptr, SSL_free) {
  *this = std::move(other);
}

Stream& Stream::operator=(Stream&& other) noexcept {
  socket_ = std::move(other.socket_);
  tls_ = std::move(other.tls_);
  written_ = other.written_;
  out_ = std::move(other.out_);
  sent_ = other.sent_;
  if (tls_) BIO_set_data(SSL_get_wbio(tls_.get()), &out_);
  return *this;
}

bool Stream::shake_hands() {
  if (!tls_) return true;
  if (!SSL_is_init_finished(tls_.get())) {
    ERR_clear_error();
    errno = 0;
    if (const int result = SSL_do_handshake(tls_.get()); result != 1) {
      flush();
      check(result);
      return false;
    }
  }
  flush();
  return !holds();
}

short Stream::awaited() const {
  return holds() ? POLLOUT : POLLIN;
}

// Sends records as far as possible without waiting.
void Stream::flush() {
  while (holds()) {
    const ssize_t moved =
        ::send(socket_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0 && errno == EAGAIN) return;
    if (moved < 0) throw Unavailable(system_words(errno));
    sent_ += static_cast<size_t>(moved);
  }
  out_.clear();
  sent_ = 0;
}

// Throws if a call has failed, except if it would only have to wait.
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
  if (tls_) return write_tls(parts);
  if (parts.empty()) return 0;
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

size_t Stream::write_tls(std::span<iovec> parts) {
  std::array<std::byte, kRecord> copy;
  size_t total = 0;
  flush();
  for (size_t first = 0; first < parts.size() && !holds();) {
    while (first < parts.size() && out_.size() < kMostHeld) {
      const auto record = next_record(parts.subspan(first), copy);
      size_t moved = 0;
      ERR_clear_error();
      errno = 0;
      if (const int result = SSL_write_ex(tls_.get(), record.data(), record.size(), &moved);
          result != 1)
        check(result);
      total += moved;
      first = advance(parts, first, moved);
    }
    flush();
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
      if (total == 0) check(result);  // otherwise the next call finds the error
      break;
    }
    total += moved;
    first = advance(parts, first, moved);
  }
  flush();  // sends our new key if the peer has asked for one
  return total;
}

void Stream::renew_key(size_t written) {
  written_ += written;
  if (written_ < kBytesOfAKey) return;
  if (SSL_key_update(tls_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1) written_ = 0;
}

}  // namespace muster::collective
