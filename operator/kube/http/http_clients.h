#pragma once

#include <cpprest/http_client.h>

#include <memory>

#include "common/threads/mutex.h"
#include "operator/kube/http/credentials.h"

namespace muster::kube {

// cpprestsdk's clients for the current credentials, each with its own pool of connections. New
// certificates cause new clients; an old client is deleted after the last call that uses it.
class HttpClients {
 public:
  // Throws Invalid if the server's address is not an HTTP URL, or if the certificates are not
  // valid.
  explicit HttpClients(Credentials& credentials);

  struct Pair {
    std::shared_ptr<web::http::client::http_client> calls;
    std::shared_ptr<web::http::client::http_client> streams;
    std::string authorization;
  };
  Pair current();

  // Returns "host:port" of the server.
  const std::string& host() const { return host_; }

 private:
  web::http::client::http_client_config config(const Credentials::Tls& tls) const;
  void renew(const Credentials::Current& current) MUSTER_REQUIRES(mutex_);

  Credentials& credentials_;
  web::uri server_;
  std::string host_;
  Mutex mutex_;
  uint64_t revision_ MUSTER_GUARDED_BY(mutex_) = 0;
  Pair pair_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::kube
