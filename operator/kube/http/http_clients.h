#pragma once

#include <cpprest/http_client.h>

#include <memory>
#include <mutex>

#include "operator/kube/http/credentials.h"

namespace muster::kube {

// cpprestsdk's clients, each with a pool of connections of its own, as the credentials are now: new
// certificates make new clients, and the old ones go with the last call that is under way.
class HttpClients {
 public:
  // Throws Invalid for a server that is no URL of HTTP, or certificates that are none.
  explicit HttpClients(Credentials& credentials);

  struct Pair {
    std::shared_ptr<web::http::client::http_client> calls;
    std::shared_ptr<web::http::client::http_client> streams;
    std::string authorization;
  };
  Pair current();

  // "host:port" of the server.
  const std::string& host() const { return host_; }

 private:
  web::http::client::http_client_config config(const Credentials::Tls& tls) const;
  void renew(const Credentials::Current& current);

  Credentials& credentials_;
  web::uri server_;
  std::string host_;
  std::mutex mutex_;
  uint64_t revision_ = 0;
  Pair pair_;
};

}  // namespace muster::kube
