#pragma once

#include <filesystem>
#include <string>

namespace muster {

// A private key and the certificate that it signs itself, both as PEM. Whoever has them is one of
// the replicas of a job: each shows the certificate, and trusts no other.
struct KeyPair {
  // The host name in every certificate, for clients that check one. It is nobody's address.
  static constexpr const char* kHost = "replica.muster.dev";

  // The names of the files in which replicas find it.
  static constexpr const char* kKeyFile = "tls.key";
  static constexpr const char* kCertificateFile = "tls.crt";

  std::string key;
  std::string certificate;
};

// Returns a new key pair: ECDSA on P-256, valid from 2000 to 9999, so that no clock matters, for
// servers and clients. Throws Unavailable if the system has no randomness.
KeyPair make_key_pair();

// Writes it into a folder that is there; only this user can read the key. The certificate comes
// last: where it is, the key is too. Throws WriteError.
void write_key_pair(const std::filesystem::path& folder, const KeyPair& pair);

}  // namespace muster
