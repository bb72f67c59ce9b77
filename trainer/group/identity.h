#pragma once

#include <openssl/types.h>

#include <filesystem>
#include <memory>
#include <string>

namespace grpc {
class ChannelCredentials;
class ServerCredentials;
}  // namespace grpc

namespace muster::group {

// Prevents OpenSSL from cleaning up when the process ends, because gRPC's threads use it until
// then. Call this before anything else uses OpenSSL.
void keep_openssl();

// The identity by which the replicas of a job recognize each other: the job's key pair
// (common/net/key_pair.h). With a key pair, connections use TLS; each end shows the job's
// certificate and accepts no other. Without a key pair, connections are plaintext, and every peer
// that reaches a port is trusted.
class Identity {
 public:
  // No key pair.
  Identity() = default;

  // Reads `tls.crt` and `tls.key` from a folder. Throws Invalid (kBadConfig) naming the file if one
  // is missing or is not PEM, or if the two do not belong together.
  static Identity load(const std::filesystem::path& folder);

  explicit operator bool() const { return context_ != nullptr; }

  std::shared_ptr<grpc::ServerCredentials> server_credentials() const;
  // For a channel that expects KeyPair::kHost as the name of its peer.
  std::shared_ptr<grpc::ChannelCredentials> channel_credentials() const;
  // Returns the context for our own TLS 1.3 connections, for servers and clients; null without a
  // key pair.
  SSL_CTX* context() const { return context_.get(); }

 private:
  std::string key_, certificate_;
  std::shared_ptr<SSL_CTX> context_;
};

}  // namespace muster::group
