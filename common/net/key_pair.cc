#include "common/net/key_pair.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "common/error.h"
#include "common/net/pem.h"
#include "common/random.h"
#include "common/system/file.h"

namespace muster {

namespace {

void free_memory(BIO* memory) {
  BIO_free(memory);
}

void require(bool done) {
  if (!done) throw Unavailable("no key pair can be made: OpenSSL has failed");
}

void add_extension(X509* certificate, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const OpensslHandle<X509_EXTENSION> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()), X509_EXTENSION_free);
  require(extension && X509_add_ext(certificate, extension.get(), -1) == 1);
}

template <class Write>
std::string to_pem(const Write& write) {
  const OpensslHandle<BIO> memory(BIO_new(BIO_s_mem()), free_memory);
  require(memory && write(memory.get()) == 1);
  char* text = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &text);
  return {text, static_cast<size_t>(size)};
}

}  // namespace

KeyPair make_key_pair() {
  const OpensslHandle<EVP_PKEY> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const OpensslHandle<X509> certificate(X509_new(), X509_free);
  require(key && certificate);
  X509* made = certificate.get();
  X509_NAME* name = X509_get_subject_name(made);
  const auto* host = reinterpret_cast<const unsigned char*>(KeyPair::kHost);
  require(X509_set_version(made, X509_VERSION_3) == 1 &&
          ASN1_INTEGER_set_uint64(X509_get_serialNumber(made), random_number()) == 1 &&
          X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, host, -1, -1, 0) == 1 &&
          X509_set_issuer_name(made, name) == 1 &&
          ASN1_TIME_set_string_X509(X509_getm_notBefore(made), "20000101000000Z") == 1 &&
          ASN1_TIME_set_string_X509(X509_getm_notAfter(made), "99991231235959Z") == 1 &&
          X509_set_pubkey(made, key.get()) == 1);
  add_extension(made, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(made, NID_key_usage, "critical,digitalSignature");
  add_extension(made, NID_ext_key_usage, "serverAuth,clientAuth");
  add_extension(made, NID_subject_alt_name, std::string("DNS:") + KeyPair::kHost);
  require(X509_sign(made, key.get(), EVP_sha256()) > 0);
  return {to_pem([&](BIO* out) {
            return PEM_write_bio_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          }),
          to_pem([&](BIO* out) { return PEM_write_bio_X509(out, made); })};
}

void write_key_pair(const std::filesystem::path& folder, const KeyPair& pair) {
  namespace fs = std::filesystem;
  const fs::path key = folder / KeyPair::kKeyFile;
  write_file_atomically(key, pair.key);
  std::error_code error;
  fs::permissions(key, fs::perms::owner_read | fs::perms::owner_write, error);
  if (error) throw WriteError(key.string(), error.value());
  write_file_atomically(folder / KeyPair::kCertificateFile, pair.certificate);
}

}  // namespace muster
