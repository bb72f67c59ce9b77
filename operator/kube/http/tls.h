#pragma once

#include <openssl/ssl.h>

#include <vector>

#include "common/net/pem.h"
#include "operator/kube/http/credentials.h"

namespace muster::kube {

// Authorities, certificate and key, parsed once and shared by all connections, because reading the
// system's bundle of authorities for each context costs 20 ms.
class TlsMaterial {
 public:
  // Uses the system's authorities if `pem` has none. Throws Invalid, naming the part that is not
  // PEM, or saying that key and certificate do not belong together.
  explicit TlsMaterial(const Credentials::Tls& pem);

  // Makes connections of `context` trust only these authorities. Throws Unavailable.
  void apply(SSL_CTX* context) const;

 private:
  OpensslHandle<X509_STORE> authorities_;
  std::vector<OpensslHandle<X509>> chain_;  // the client's chain, its own certificate first
  OpensslHandle<EVP_PKEY> key_;
};

}  // namespace muster::kube
