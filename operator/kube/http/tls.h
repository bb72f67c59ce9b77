#pragma once

#include <openssl/ssl.h>

#include <vector>

#include "common/net/pem.h"
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
  OpensslHandle<X509_STORE> authorities_;
  std::vector<OpensslHandle<X509>> chain_;  // of the client, its own certificate first
  OpensslHandle<EVP_PKEY> key_;
};

}  // namespace muster::kube
