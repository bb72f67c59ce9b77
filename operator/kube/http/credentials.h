#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "common/threads/mutex.h"
#include "operator/kube/http/config.h"

namespace muster::kube {

// The current token and certificates of a Config: files are read again when they are older than
// `reread`, or when the server has refused their content (401). If a file cannot be read, or a
// certificate and a key do not match, the values that were read before stay in force; the first
// read throws. Thread-safe.
class Credentials {
 public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;
  // Throws Invalid or Unavailable for a file that cannot be read.
  explicit Credentials(Config config, std::chrono::seconds reread = std::chrono::seconds(60),
                       Clock clock = std::chrono::steady_clock::now);

  struct Tls {
    std::string authority, certificate, key;  // PEM; empty: none
    bool operator==(const Tls&) const = default;
  };
  struct Current {
    std::string authorization;  // "Bearer ..."; empty: none
    Tls tls;
    uint64_t revision = 1;  // version of `tls`, raised by each change
  };
  Current current();

  // Notes that the server has refused the credentials: the next current() reads all files again.
  void refused();

  const Config& config() const { return config_; }

 private:
  Current read() const;

  const Config config_;
  const std::chrono::seconds reread_;
  const Clock clock_;
  Mutex mutex_;
  Current current_ MUSTER_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point read_at_ MUSTER_GUARDED_BY(mutex_){};
  bool stale_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::kube
