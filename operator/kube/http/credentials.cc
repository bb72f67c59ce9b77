#include "operator/kube/http/credentials.h"

#include <algorithm>

#include "common/error.h"
#include "common/program/log.h"
#include "common/system/file.h"

namespace muster::kube {

namespace {

std::string content(const PemSource& source) {
  return source.file.empty() ? source.text : read_file(source.file);
}

// Returns one line without anything that could end an HTTP header.
std::string token_of(const PemSource& source) {
  std::string token = content(source);
  const char* const blanks = " \t\r\n";
  token.erase(token.find_last_not_of(blanks) + 1);
  token.erase(0, token.find_first_not_of(blanks));
  const bool good =
      std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 127; });
  if (!good || (token.empty() && !source.empty())) {
    const std::string where = source.file.empty() ? "the kubeconfig" : source.file.string();
    throw Invalid("expected a bearer token in " + where + ", found something else");
  }
  return token;
}

}  // namespace

Credentials::Credentials(Config config, std::chrono::seconds reread, Clock clock)
    : config_(std::move(config)),
      reread_(reread),
      clock_(std::move(clock)),
      current_(read()),
      read_at_(clock_()) {}

Credentials::Current Credentials::read() const {
  Current current;
  const std::string token = token_of(config_.token);
  if (!token.empty()) current.authorization = "Bearer " + token;
  current.tls.authority = content(config_.authority);
  current.tls.certificate = content(config_.certificate);
  current.tls.key = content(config_.key);
  return current;
}

Credentials::Current Credentials::current() {
  const MutexLock lock(mutex_);
  if (!stale_ && clock_() - read_at_ < reread_) return current_;
  read_at_ = clock_();
  stale_ = false;
  try {
    Current found = read();
    found.revision = current_.revision + (found.tls == current_.tls ? 0 : 1);
    current_ = std::move(found);
  } catch (const std::runtime_error& error) {
    log::warning(std::string("credentials for the Kubernetes API: ") + error.what());
  }
  return current_;
}

void Credentials::refused() {
  const MutexLock lock(mutex_);
  stale_ = true;
}

}  // namespace muster::kube
