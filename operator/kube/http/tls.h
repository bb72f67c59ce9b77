#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <vector>

#include "operator/kube/http/credentials.h"

namespace muster::kube {

// Authorities, certificate and key, parsed once and shared by all connections: a context that reads
// the system's bundle of authorities costs 20 ms.
class TlsMaterial {
 public:
  // Uses the system's authorities if `pem` has none. Throws Invalid, saying which part of what is
  // no PEM, or that key and certificate do not belong together.
  explicit TlsMaterial(const Credentials::Tls& pem);

  // Makes connections of `context` trust only the authorities here. Throws Unavailable.
  void apply(SSL_CTX* context) const;

 private:
  template <class T>
  using Handle = std::unique_ptr<T, void (*)(T*)>;

  Handle<X509_STORE> authorities_;
  std::vector<Handle<X509>> chain_;  // of the client, its own certificate first
  Handle<EVP_PKEY> key_;
};

}  // namespace muster::kube
