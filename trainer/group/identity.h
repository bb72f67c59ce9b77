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

// Keeps OpenSSL from cleaning up when the process ends: gRPC's threads use it until then. To be
// called before anything else uses OpenSSL.
void keep_openssl();

// An identity is what the replicas of a job know each other by: the job's key pair
// (common/net/key_pair.h). Connections are TLS then; each end shows the job's certificate and
// accepts no other. Without a key pair, connections are plaintext, and whoever reaches a port is
// believed.
class Identity {
 public:
  // No key pair.
  Identity() = default;

  // Reads `tls.crt` and `tls.key` from a folder. Throws Invalid (kBadConfig) naming the file if one
  // is missing, is no PEM, or if they do not belong together.
  static Identity load(const std::filesystem::path& folder);

  explicit operator bool() const { return context_ != nullptr; }

  std::shared_ptr<grpc::ServerCredentials> server_credentials() const;
  // For a channel that expects KeyPair::kHost as the name of its peer.
  std::shared_ptr<grpc::ChannelCredentials> channel_credentials() const;
  // For connections of TLS 1.3 of our own, of servers and clients alike; null without a key pair.
  SSL_CTX* context() const { return context_.get(); }

 private:
  std::string key_, certificate_;
  std::shared_ptr<SSL_CTX> context_;
};

}  // namespace muster::group
