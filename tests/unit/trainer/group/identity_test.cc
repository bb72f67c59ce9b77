#include "trainer/group/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "common/exit_code.h"
#include "tests/unit/trainer/group/identity_of_tests.h"

namespace muster::group {
namespace {

using ::testing::HasSubstr;

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
  write_key_pair(folder.path());
  EXPECT_EQ(refusal(folder.path()), "none");
  write_file_atomically(folder.path() / "tls.crt", "nonsense");
  EXPECT_THAT(refusal(folder.path()), HasSubstr("tls.crt: expected a certificate as PEM"));
  write_key_pair(folder.path());
  write_file_atomically(folder.path() / "tls.key", "nonsense");
  EXPECT_THAT(refusal(folder.path()), HasSubstr("tls.key: expected a private key as PEM"));
  write_file_atomically(folder.path() / "tls.key", make_key_pair().key);
  EXPECT_THAT(refusal(folder.path()), HasSubstr("expected the key of the certificate beside it"));
}

TEST(IdentityTest, IsNoneByItself) {
  EXPECT_FALSE(Identity());
  EXPECT_EQ(Identity().context(), nullptr);
}

}  // namespace
}  // namespace muster::group
