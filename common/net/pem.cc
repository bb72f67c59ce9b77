#include "common/net/pem.h"

#include <openssl/pem.h>

namespace muster {

namespace {

OpensslHandle<BIO> reader_of(const std::string& text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free_all};
}

// Without this callback OpenSSL asks on the terminal.
int no_passphrase(char*, int, int, void*) {
  return 0;
}

}  // namespace

OpensslHandle<X509> read_certificate(const std::string& pem) {
  return {PEM_read_bio_X509(reader_of(pem).get(), nullptr, nullptr, nullptr), X509_free};
}

OpensslHandle<EVP_PKEY> read_private_key(const std::string& pem) {
  return {PEM_read_bio_PrivateKey(reader_of(pem).get(), nullptr, no_passphrase, nullptr),
          EVP_PKEY_free};
}

}  // namespace muster
