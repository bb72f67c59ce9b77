#include "operator/kube/http/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "common/error.h"

namespace muster::kube {

namespace {

std::string openssl_error() {
  char words[256] = "no reason given";
  if (const unsigned long error = ERR_get_error()) ERR_error_string_n(error, words, sizeof words);
  ERR_clear_error();
  return words;
}

[[noreturn]] void fail(const std::string& what) {
  throw Invalid("TLS: " + what + ": " + openssl_error());
}

// Calls `take` with every certificate of a bundle; other blocks are skipped.
template <class Take>
void each_certificate(const std::string& text, const std::string& what, const Take& take) {
  const OpensslHandle<BIO> bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())),
                               BIO_free_all);
  if (!bio) fail("no memory");
  int count = 0;
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    take(certificate);
    ++count;
  }
  const unsigned long error = ERR_peek_last_error();
  const bool at_end =
      ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  if (count == 0 || !at_end) fail("expected " + what + " in PEM");
  ERR_clear_error();
}

}  // namespace

TlsMaterial::TlsMaterial(const Credentials::Tls& pem)
    : authorities_(X509_STORE_new(), X509_STORE_free), key_(nullptr, EVP_PKEY_free) {
  if (!authorities_) fail("no memory");
  if (pem.authority.empty()) {
    // These are the built-in paths: initialize_transport() has turned off the paths in the
    // environment.
    X509_STORE_load_file(authorities_.get(), X509_get_default_cert_file());
    X509_STORE_load_path(authorities_.get(), X509_get_default_cert_dir());
    ERR_clear_error();
  } else {
    each_certificate(pem.authority, "certificates of authorities", [&](X509* certificate) {
      X509_STORE_add_cert(authorities_.get(), certificate);
      X509_free(certificate);
    });
  }
  if (pem.certificate.empty()) return;
  each_certificate(pem.certificate, "the client's certificate",
                   [&](X509* certificate) { chain_.emplace_back(certificate, X509_free); });
  key_ = read_private_key(pem.key);
  if (!key_) fail("expected the client's private key in PEM, without a passphrase");
  if (X509_check_private_key(chain_.front().get(), key_.get()) != 1) {
    fail("expected the private key of the client's certificate, found another");
  }
}

void TlsMaterial::apply(SSL_CTX* context) const {
  SSL_CTX_set1_cert_store(context, authorities_.get());
  bool good = SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1;
  if (!chain_.empty()) {
    good = good && SSL_CTX_use_certificate(context, chain_.front().get()) == 1 &&
           SSL_CTX_use_PrivateKey(context, key_.get()) == 1;
    for (size_t i = 1; i < chain_.size(); ++i) {
      good = good && SSL_CTX_add1_chain_cert(context, chain_[i].get()) == 1;
    }
  }
  if (!good) throw Unavailable("TLS: cannot prepare a connection: " + openssl_error());
}

}  // namespace muster::kube
