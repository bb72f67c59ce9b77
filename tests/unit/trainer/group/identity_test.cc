#include "trainer/group/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/system/file.h"
#include "tests/unit/trainer/group/identity_of_tests.h"

namespace muster::group {
namespace {

using ::testing::HasSubstr;

// Its passphrase is "x"; OpenSSL would ask the terminal for it.
constexpr const char* kEncryptedKey =
    "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
    "MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAhNHtiT6obX1wICCAAw\n"
    "DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEFvlCgU+BSJUber31c2qtMAEgZA8\n"
    "XMyhX6kEj54JvhGlG7gGeN5R4Nyaw1R0ZtLle3dPsKAMhhQyc/nvsN/IYyJk1uJr\n"
    "oY/waWE48reNFCwxkCLSlbkb1bVgGFggnd8BZKqU/buG7Bc1jDuqrZ0FYZ5Yptf8\n"
    "F/JZPBX9WwAJCSwHdUqoXegl6JU/rECl4YmII6W6CZJSyES4R9WbEk7y0ivqTjE=\n"
    "-----END ENCRYPTED PRIVATE KEY-----\n";

std::string refusal(const std::filesystem::path& folder) {
  try {
    return Identity::load(folder) ? "none" : "no identity";
  } catch (const Invalid& error) {
    EXPECT_EQ(error.exit_code(), kBadConfig);
    return error.what();
  }
}

TEST(IdentityTest, NamesTheFileThatIsNoKeyOrCertificate) {
  const test::TemporaryFolder folder;
  EXPECT_THAT(refusal(folder.path()), HasSubstr("tls.crt"));
  write_key_pair(folder.path(), make_key_pair());
  EXPECT_EQ(refusal(folder.path()), "none");
  write_file_atomically(folder.path() / "tls.crt", "nonsense");
  EXPECT_THAT(refusal(folder.path()), HasSubstr("tls.crt: expected a certificate as PEM"));
  write_key_pair(folder.path(), make_key_pair());
  write_file_atomically(folder.path() / "tls.key", "nonsense");
  EXPECT_THAT(refusal(folder.path()), HasSubstr("tls.key: expected a private key as PEM"));
  write_file_atomically(folder.path() / "tls.key", kEncryptedKey);
  EXPECT_THAT(refusal(folder.path()), HasSubstr("as PEM, without a passphrase"));
  write_file_atomically(folder.path() / "tls.key", make_key_pair().key);
  EXPECT_THAT(refusal(folder.path()), HasSubstr("expected the key of the certificate beside it"));
}

TEST(IdentityTest, IsNoneByItself) {
  EXPECT_FALSE(Identity());
  EXPECT_EQ(Identity().context(), nullptr);
}

}  // namespace
}  // namespace muster::group
