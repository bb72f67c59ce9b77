#include "trainer/group/wide_aes.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/provider.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace muster::group {
namespace {

using Bytes = std::vector<unsigned char>;

struct Message {
  Bytes key, nonce, additional, text;
};

class Context {
 public:
  Context(const std::string& provider, size_t key_size) {
    const std::string name = "AES-" + std::to_string(8 * key_size) + "-GCM";
    cipher_.reset(EVP_CIPHER_fetch(nullptr, name.c_str(), ("provider=" + provider).c_str()));
  }
  const EVP_CIPHER* cipher() const { return cipher_.get(); }
  EVP_CIPHER_CTX* get() const { return context_.get(); }

  // Returns the encrypted text with its tag; works on the text in place, in pieces of `piece`.
  Bytes encrypt(const Message& message, size_t piece) const {
    Bytes out = message.text;
    EXPECT_TRUE(begin(message, 1));
    EXPECT_TRUE(update(out, out.size(), piece));
    out.resize(out.size() + 16);
    EXPECT_EQ(EVP_CIPHER_CTX_ctrl(get(), EVP_CTRL_AEAD_GET_TAG, 16, &out[out.size() - 16]), 1);
    return out;
  }

  // Whether `sealed` is what encrypt() makes of the message.
  bool decrypts(const Message& message, Bytes sealed, size_t piece) const {
    const size_t size = sealed.size() - 16;
    const bool begun = begin(message, 0) &&
                       EVP_CIPHER_CTX_ctrl(get(), EVP_CTRL_AEAD_SET_TAG, 16, &sealed[size]) == 1;
    if (!begun || !update(sealed, size, piece)) return false;
    sealed.resize(size);
    EXPECT_EQ(sealed, message.text);
    return true;
  }

 private:
  bool begin(const Message& message, int encrypts) const {
    int size = 0;
    const bool begun = EVP_CipherInit_ex(get(), cipher(), nullptr, message.key.data(),
                                         message.nonce.data(), encrypts) == 1;
    return begun && (message.additional.empty() ||
                     EVP_CipherUpdate(get(), nullptr, &size, message.additional.data(),
                                      static_cast<int>(message.additional.size())) == 1);
  }

  bool update(Bytes& text, size_t end, size_t piece) const {
    int size = 0;
    for (size_t at = 0; at < end; at += piece) {
      const auto some = static_cast<int>(std::min(piece, end - at));
      if (EVP_CipherUpdate(get(), &text[at], &size, &text[at], some) != 1) return false;
    }
    unsigned char none = 0;
    return EVP_CipherFinal_ex(get(), &none, &size) == 1;
  }

  std::unique_ptr<EVP_CIPHER, void (*)(EVP_CIPHER*)> cipher_{nullptr, EVP_CIPHER_free};
  std::unique_ptr<EVP_CIPHER_CTX, void (*)(EVP_CIPHER_CTX*)> context_{EVP_CIPHER_CTX_new(),
                                                                      EVP_CIPHER_CTX_free};
};

class WideAesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!use_wide_aes()) GTEST_SKIP() << "the processor lacks AVX-512 or VAES";
  }

  Bytes bytes(size_t count) {
    Bytes result(count);
    for (unsigned char& byte : result) byte = static_cast<unsigned char>(random_());
    return result;
  }
  Message message(size_t key_size, size_t additional, size_t text) {
    return {bytes(key_size), bytes(12), bytes(additional), bytes(text)};
  }

  std::mt19937 random_{1};
};

TEST_F(WideAesTest, EncryptsAsOpenSslDoes) {
  for (const size_t key_size : {16, 32}) {
    const Context ours(kWideAes, key_size), theirs("default", key_size);
    ASSERT_NE(ours.cipher(), nullptr);
    for (const size_t size : {0, 1, 15, 16, 17, 255, 256, 257, 1000, 4096, 16385, 70001}) {
      for (const size_t additional : {0, 5, 13, 100}) {
        for (const size_t piece : {7, 64, 1 << 20}) {
          const Message sent = message(key_size, additional, size);
          const Bytes sealed = ours.encrypt(sent, piece);
          ASSERT_EQ(sealed, theirs.encrypt(sent, 1 << 20)) << key_size << " " << size;
          ASSERT_TRUE(ours.decrypts(sent, sealed, piece));
        }
      }
    }
  }
}

TEST_F(WideAesTest, RefusesWhatWasChanged) {
  const Context ours(kWideAes, 16);
  const Message sent = message(16, 5, 1000);
  const Bytes sealed = ours.encrypt(sent, 1000);
  for (const size_t at : {size_t{0}, size_t{999}, size_t{1000}, sealed.size() - 1}) {
    Bytes changed = sealed;
    changed[at] ^= 1;
    Message expected = sent;
    if (at < 1000) expected.text[at] ^= 1;
    EXPECT_FALSE(ours.decrypts(expected, changed, 1000)) << at;
  }
  Message other = sent;
  other.additional[0] ^= 1;
  EXPECT_FALSE(ours.decrypts(other, sealed, 1000));
  EXPECT_TRUE(ours.decrypts(sent, sealed, 1000));
}

TEST_F(WideAesTest, TakesANonceOnceAndNoCallsOutOfOrder) {
  const Context ours(kWideAes, 32);
  EVP_CIPHER_CTX* const context = ours.get();
  const Message sent = message(32, 5, 100);
  Bytes out = sent.text;
  int size = 0;
  ASSERT_EQ(EVP_EncryptInit_ex(context, ours.cipher(), nullptr, sent.key.data(), nullptr), 1);
  EXPECT_NE(EVP_EncryptUpdate(context, out.data(), &size, out.data(), 100), 1) << "no nonce";
  EXPECT_NE(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, out.data()), 1);
  ASSERT_EQ(EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, sent.nonce.data()), 1);
  ASSERT_EQ(EVP_EncryptUpdate(context, out.data(), &size, out.data(), 100), 1);
  EXPECT_NE(EVP_EncryptUpdate(context, nullptr, &size, out.data(), 5), 1) << "late additional data";
  ASSERT_EQ(EVP_EncryptFinal_ex(context, out.data(), &size), 1);
  EXPECT_NE(EVP_EncryptUpdate(context, out.data(), &size, out.data(), 100), 1) << "used nonce";

  // A tag serves one message.
  const Bytes sealed = ours.encrypt(sent, 100);
  ASSERT_TRUE(ours.decrypts(sent, sealed, 100));
  ASSERT_EQ(EVP_DecryptInit_ex(context, nullptr, nullptr, nullptr, sent.nonce.data()), 1);
  ASSERT_EQ(EVP_DecryptUpdate(context, nullptr, &size, sent.additional.data(), 5), 1);
  ASSERT_EQ(EVP_DecryptUpdate(context, out.data(), &size, sealed.data(), 100), 1);
  EXPECT_NE(EVP_DecryptFinal_ex(context, out.data(), &size), 1);
}

TEST_F(WideAesTest, RefusesOtherSizesAndTls12) {
  const Context ours(kWideAes, 16);
  EVP_CIPHER_CTX* const context = ours.get();
  Bytes key = bytes(16), nonce = bytes(16);
  ASSERT_EQ(EVP_EncryptInit_ex(context, ours.cipher(), nullptr, key.data(), nullptr), 1);
  EXPECT_EQ(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, 12, nullptr), 1);
  EXPECT_NE(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, 16, nullptr), 1);
  EXPECT_NE(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_IV_FIXED, 4, nonce.data()), 1);
  EXPECT_LE(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_TLS1_AAD, 13, nonce.data()), 0);
}

TEST_F(WideAesTest, ServesAllWhoDoNotAskForAnother) {
  const std::unique_ptr<EVP_CIPHER, void (*)(EVP_CIPHER*)> gcm(
      EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr), EVP_CIPHER_free),
      cbc(EVP_CIPHER_fetch(nullptr, "AES-256-CBC", nullptr), EVP_CIPHER_free);
  ASSERT_TRUE(gcm && cbc);
  EXPECT_STREQ(OSSL_PROVIDER_get0_name(EVP_CIPHER_get0_provider(gcm.get())), kWideAes);
  EXPECT_STREQ(OSSL_PROVIDER_get0_name(EVP_CIPHER_get0_provider(cbc.get())), "default");
}

}  // namespace
}  // namespace muster::group
