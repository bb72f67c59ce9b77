#pragma once

#include <string>

namespace muster::kube {

// A certificate and its private key, in PEM.
struct Identity {
  std::string certificate;
  std::string key;
};

Identity make_authority(const std::string& name);
// `names` as OpenSSL takes them: "DNS:localhost,IP:127.0.0.1".
Identity make_identity(const Identity& authority, const std::string& common_name,
                       const std::string& names);

}  // namespace muster::kube
