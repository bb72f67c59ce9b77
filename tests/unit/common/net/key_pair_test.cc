#include "common/net/key_pair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>

namespace muster {
namespace {

TEST(KeyPair, IsOfItsOwnAndValidForLong) {
  const KeyPair pair = make_key_pair();
  const std::unique_ptr<BIO, void (*)(BIO*)> text(
      BIO_new_mem_buf(pair.certificate.data(), static_cast<int>(pair.certificate.size())),
      BIO_free_all);
  const std::unique_ptr<X509, void (*)(X509*)> certificate(
      PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr), X509_free);
  ASSERT_TRUE(certificate);
  EXPECT_EQ(X509_check_host(certificate.get(), KeyPair::kHost, 0, 0, nullptr), 1);
  EXPECT_EQ(X509_verify(certificate.get(), X509_get0_pubkey(certificate.get())), 1);
  tm begin{}, end{};
  ASN1_TIME_to_tm(X509_get0_notBefore(certificate.get()), &begin);
  ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &end);
  EXPECT_EQ(begin.tm_year, 100);
  EXPECT_EQ(end.tm_year, 8099);
  EXPECT_EQ(X509_check_ca(certificate.get()), 0) << "it signs no others";
  EXPECT_THAT(pair.key, ::testing::StartsWith("-----BEGIN PRIVATE KEY-----"));
  EXPECT_NE(make_key_pair().key, pair.key);
}

}  // namespace
}  // namespace muster
