#pragma once

#include <unistd.h>

#include <utility>

namespace muster {

// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }
  void reset() {
    if (fd_ >= 0) ::close(release());
  }
  // Closes the descriptor. Returns false, with errno, on an error: close() may be the only call
  // that reports a writer's last error.
  bool close_checked() { return ::close(release()) == 0; }

 private:
  int fd_;
};

}  // namespace muster
