#pragma once

#include <cpprest/http_client.h>

#include <memory>

#include "common/threads/mutex.h"
#include "operator/kube/http/credentials.h"

namespace muster::kube {

// cpprestsdk's clients, each with its own pool of connections, for the present credentials: new
// certificates make new clients, and old clients go with the last call that uses them.
class HttpClients {
 public:
  // Throws Invalid if the server is no HTTP URL, or the certificates are not valid.
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
