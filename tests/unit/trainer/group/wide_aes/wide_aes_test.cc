#include "trainer/group/wide_aes/wide_aes.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "common/system/file.h"
#include "tests/unit/trainer/group/identity_of_tests.h"

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

  // Returns the encrypted text with its tag, made in pieces of `piece`.
  Bytes encrypt(const Message& message, size_t piece) const {
    Bytes out(message.text.size());
    EXPECT_TRUE(begin(message, 1));
    EXPECT_TRUE(update(out, message.text, out.size(), piece));
    out.resize(out.size() + 16);
    EXPECT_EQ(EVP_CIPHER_CTX_ctrl(get(), EVP_CTRL_AEAD_GET_TAG, 16, &out[out.size() - 16]), 1);
    return out;
  }

  // Whether `sealed` is what encrypt() makes of the message; decrypts it in its place.
  bool decrypts(const Message& message, Bytes sealed, size_t piece) const {
    const size_t size = sealed.size() - 16;
    const bool begun = begin(message, 0) &&
                       EVP_CIPHER_CTX_ctrl(get(), EVP_CTRL_AEAD_SET_TAG, 16, &sealed[size]) == 1;
    if (!begun || !update(sealed, sealed, size, piece)) return false;
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

  bool update(Bytes& out, const Bytes& in, size_t end, size_t piece) const {
    int size = 0;
    for (size_t at = 0; at < end; at += piece) {
      const auto some = static_cast<int>(std::min(piece, end - at));
      if (EVP_CipherUpdate(get(), &out[at], &size, &in[at], some) != 1) return false;
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
    if (!use_wide_aes()) GTEST_SKIP() << "the processor lacks AVX-512, VAES or what goes with them";
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

  // Nor does the tag that was made last count as one that was set.
  ours.encrypt(sent, 100);
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
  EXPECT_NE(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_IV_GEN, 8, nonce.data()), 1);
  EXPECT_EQ(EVP_CIPHER_CTX_set_padding(context, 0), 1);
  ASSERT_EQ(EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, nonce.data()), 1);
  Bytes found(12);
  EXPECT_EQ(EVP_CIPHER_CTX_get_updated_iv(context, found.data(), 12), 1);
  EXPECT_TRUE(std::equal(found.begin(), found.end(), nonce.begin()));
}

TEST(WideAesConfigurationTest, LeavesTheUsersPropertiesAlone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // in a process that has not decided yet
  const test::TemporaryFolder folder;
  const std::string file = folder.path() / "openssl.cnf";
  const auto used_with = [&](const std::string& properties) {
    write_file_atomically(
        file,
        "openssl_conf = all\n[all]\nalg_section = properties\n[properties]\n" + properties + "\n");
    setenv("OPENSSL_CONF", file.c_str(), 1);
    return use_wide_aes();
  };
  EXPECT_EXIT(std::_Exit(used_with("default_properties = provider!=legacy") ? 1 : 0),
              testing::ExitedWithCode(0), "");
  EXPECT_EXIT(std::_Exit(used_with("fips_mode = yes") ? 1 : 0), testing::ExitedWithCode(0), "");
  const int expected = use_wide_aes() ? 1 : 0;
  EXPECT_EXIT(std::_Exit(used_with("") ? 1 : 0), testing::ExitedWithCode(expected), "");
}

// The two ends of a connection within this process.
class Connection {
 public:
  // `suite`: of TLS 1.3, or of 1.2 for another version. `providers`: of the client, of the server.
  Connection(int version, const char* suite, std::array<const char*, 2> providers) {
    write_key_pair(folder_.path(), make_key_pair());
    for (const size_t end : {0, 1}) {
      const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(
          SSL_CTX_new_ex(nullptr, providers[end], TLS_method()), SSL_CTX_free);
      SSL_CTX_set_min_proto_version(context.get(), version);
      SSL_CTX_set_max_proto_version(context.get(), version);
      EXPECT_EQ(version == TLS1_3_VERSION ? SSL_CTX_set_ciphersuites(context.get(), suite)
                                          : SSL_CTX_set_cipher_list(context.get(), suite),
                1);
      const std::string certificate = folder_.path() / "tls.crt", key = folder_.path() / "tls.key";
      SSL_CTX_use_certificate_file(context.get(), certificate.c_str(), SSL_FILETYPE_PEM);
      SSL_CTX_use_PrivateKey_file(context.get(), key.c_str(), SSL_FILETYPE_PEM);
      ends_[end].reset(SSL_new(context.get()));
      SSL_set_bio(ends_[end].get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    }
    SSL_set_connect_state(ends_[0].get());
    SSL_set_accept_state(ends_[1].get());
  }

  bool shake_hands() {
    constexpr int kMost = 10;  // flights
    for (int i = 0; i < kMost; ++i) {
      const int client = SSL_do_handshake(ends_[0].get());
      carry(0);
      const int server = SSL_do_handshake(ends_[1].get());
      carry(1);
      if (client == 1 && server == 1) return true;
    }
    return false;
  }

  // Whether what `from` sends arrives as it is at the other end.
  bool sends(size_t from, const Bytes& text, bool with_new_key) {
    if (with_new_key && SSL_key_update(ends_[from].get(), SSL_KEY_UPDATE_REQUESTED) != 1)
      return false;
    size_t written = 0;
    if (SSL_write_ex(ends_[from].get(), text.data(), text.size(), &written) != 1) return false;
    carry(from);
    Bytes found(text.size());
    for (size_t at = 0, some = 0; at < found.size(); at += some)
      if (SSL_read_ex(ends_[1 - from].get(), &found[at], found.size() - at, &some) != 1)
        return false;
    return found == text;
  }

 private:
  void carry(size_t from) {
    BIO* const out = SSL_get_wbio(ends_[from].get());
    char* bytes = nullptr;
    const long size = BIO_get_mem_data(out, &bytes);
    if (size > 0) BIO_write(SSL_get_rbio(ends_[1 - from].get()), bytes, static_cast<int>(size));
    BIO_reset(out);
  }

  const test::TemporaryFolder folder_;
  std::array<std::unique_ptr<SSL, void (*)(SSL*)>, 2> ends_{
      std::unique_ptr<SSL, void (*)(SSL*)>{nullptr, SSL_free},
      std::unique_ptr<SSL, void (*)(SSL*)>{nullptr, SSL_free}};
};

constexpr const char* kTheirs = "provider=default";

TEST_F(WideAesTest, CarriesConnectionsWhoseKeysChange) {
  for (const char* suite : {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"}) {
    for (const auto& providers :
         {std::array{"", ""}, std::array{"", kTheirs}, std::array{kTheirs, ""}}) {
      const auto work = [&, seed = random_()] {
        std::mt19937 random(seed);
        Connection connection(TLS1_3_VERSION, suite, providers);
        ASSERT_TRUE(connection.shake_hands());
        for (size_t i = 0; i < 40; ++i) {
          Bytes text(1 + random() % 70000);
          for (unsigned char& byte : text) byte = static_cast<unsigned char>(random());
          ASSERT_TRUE(connection.sends(i % 2, text, i % 3 == 0)) << suite << " " << i;
        }
      };
      std::thread other(work);
      work();
      other.join();
    }
  }
}

TEST_F(WideAesTest, LetsNoHandshakeOfTls12Pass) {
  const char* suite = "ECDHE-ECDSA-AES128-GCM-SHA256";
  EXPECT_TRUE(Connection(TLS1_2_VERSION, suite, {kTheirs, kTheirs}).shake_hands());
  EXPECT_FALSE(Connection(TLS1_2_VERSION, suite, {"", kTheirs}).shake_hands());
  EXPECT_FALSE(Connection(TLS1_2_VERSION, suite, {kTheirs, ""}).shake_hands());
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
