#include "trainer/group/identity.h"

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <openssl/ssl.h>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/net/key_pair.h"
#include "common/net/pem.h"
#include "common/system/file.h"
#include "trainer/group/wide_aes/wide_aes.h"

namespace muster::group {

namespace {

constexpr size_t kReadBuffer = 128 << 10;  // bytes read by one system call

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& expected) {
  throw Invalid(
      "MUSTER_TLS: " + file.string() + ": expected " + expected + ", found something else",
      kBadConfig);
}

std::string read(const std::filesystem::path& file) {
  try {
    return read_file(file);
  } catch (const Invalid& error) {
    throw Invalid(std::string("MUSTER_TLS: ") + error.what(), kBadConfig);
  }
}

std::shared_ptr<SSL_CTX> make_context() {
  use_wide_aes();
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_method()), SSL_CTX_free);
  if (!context) throw Unavailable("OpenSSL has no memory for TLS");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  SSL_CTX_set_ciphersuites(context.get(),
                           "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
                           "TLS_CHACHA20_POLY1305_SHA256");
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context.get(), 1);
  SSL_CTX_set_default_read_buffer_len(context.get(), kReadBuffer);
  return context;
}

}  // namespace

void keep_openssl() {
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
}

Identity Identity::load(const std::filesystem::path& folder) {
  Identity identity;
  const auto certificate_file = folder / KeyPair::kCertificateFile,
             key_file = folder / KeyPair::kKeyFile;
  identity.certificate_ = read(certificate_file);
  identity.key_ = read(key_file);
  const auto certificate = read_certificate(identity.certificate_);
  if (!certificate) refuse(certificate_file, "a certificate as PEM");
  const auto key = read_private_key(identity.key_);
  if (!key) refuse(key_file, "a private key as PEM, without a passphrase");
  identity.context_ = make_context();
  SSL_CTX* context = identity.context_.get();
  if (SSL_CTX_use_certificate(context, certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1)
    refuse(key_file, "the key of the certificate beside it");
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate.get());
  return identity;
}

std::shared_ptr<grpc::ServerCredentials> Identity::server_credentials() const {
  if (!context_) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = certificate_;
  options.pem_key_cert_pairs = {{key_, certificate_}};
  return grpc::SslServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> Identity::channel_credentials() const {
  if (!context_) return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials({certificate_, key_, certificate_});
}

}  // namespace muster::group
