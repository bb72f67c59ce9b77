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
  // Without an authority: the system's. Throws Invalid, saying which part of what is no PEM, or
  // that key and certificate do not belong together.
  explicit TlsMaterial(const Credentials::Tls& pem);

  // Nothing but the authorities here is trusted on connections of `context`. Throws Unavailable.
  void apply(SSL_CTX* context) const;

 private:
  template <class T>
  using Handle = std::unique_ptr<T, void (*)(T*)>;

  Handle<X509_STORE> authorities_;
  std::vector<Handle<X509>> chain_;  // of the client, its own certificate first
  Handle<EVP_PKEY> key_;
};

}  // namespace muster::kube
