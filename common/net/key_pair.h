#pragma once

#include <filesystem>
#include <string>

namespace muster {

// A private key and its self-signed certificate, both as PEM. They prove that a process is a
// replica of the job: each replica shows this certificate, and trusts no other.
struct KeyPair {
  // The host name in every certificate, for clients that check host names. It is not a real
  // address.
  static constexpr const char* kHost = "replica.muster.dev";

  // The names of the files in which replicas find the key pair.
  static constexpr const char* kKeyFile = "tls.key";
  static constexpr const char* kCertificateFile = "tls.crt";

  std::string key;
  std::string certificate;
};

// Returns a new key pair: ECDSA on P-256, valid from 2000 to 9999, so that no clock matters, for
// servers and clients. Throws Unavailable if the system has no randomness.
KeyPair make_key_pair();

// Writes the key pair into an existing folder; only this user can read the key. The certificate is
// written last: if it exists, the key exists too. Throws WriteError.
void write_key_pair(const std::filesystem::path& folder, const KeyPair& pair);

}  // namespace muster
