#include "tests/unit/operator/kube/certificates.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>
#include <stdexcept>

namespace muster::kube {

namespace {

template <class T>
using Handle = std::unique_ptr<T, void (*)(T*)>;

void check(bool good, const char* what) {
  if (!good) throw std::runtime_error(std::string("cannot make a certificate: ") + what);
}

template <class Write>
std::string to_pem(const Write& write) {
  const Handle<BIO> bio(BIO_new(BIO_s_mem()), [](BIO* b) { BIO_free_all(b); });
  check(write(bio.get()) == 1, "PEM");
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<size_t>(size)};
}

void add_extension(X509* certificate, int id, const std::string& value) {
  const Handle<X509_EXTENSION> extension(X509V3_EXT_conf_nid(nullptr, nullptr, id, value.c_str()),
                                         X509_EXTENSION_free);
  check(extension != nullptr, value.c_str());
  check(X509_add_ext(certificate, extension.get(), -1) == 1, "extension");
}

// Signed by `issuer`, or by itself.
Identity make(const Identity* issuer, const std::string& name, int extension,
              const std::string& value) {
  const Handle<EVP_PKEY> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const Handle<X509> certificate(X509_new(), X509_free);
  static long serial = 0;
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 24 * 3600);
  X509_set_pubkey(certificate.get(), key.get());
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  add_extension(certificate.get(), extension, value);
  Handle<EVP_PKEY> signer(nullptr, EVP_PKEY_free);
  if (issuer != nullptr) {
    const auto open = [](const std::string& text) {
      return Handle<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())),
                         [](BIO* b) { BIO_free_all(b); });
    };
    const Handle<X509> parent(
        PEM_read_bio_X509(open(issuer->certificate).get(), nullptr, nullptr, nullptr), X509_free);
    signer.reset(PEM_read_bio_PrivateKey(open(issuer->key).get(), nullptr, nullptr, nullptr));
    X509_set_issuer_name(certificate.get(), X509_get_subject_name(parent.get()));
  } else {
    X509_set_issuer_name(certificate.get(), subject);
  }
  check(X509_sign(certificate.get(), issuer ? signer.get() : key.get(), EVP_sha256()) > 0, "sign");
  return {to_pem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate.get()); }),
          to_pem([&](BIO* bio) {
            return PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

}  // namespace

Identity make_authority(const std::string& name) {
  return make(nullptr, name, NID_basic_constraints, "critical,CA:TRUE");
}

Identity make_identity(const Identity& authority, const std::string& common_name,
                       const std::string& names) {
  return make(&authority, common_name, NID_subject_alt_name, names);
}

}  // namespace muster::kube
