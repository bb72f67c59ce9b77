#include "operator/kube/http/credentials.h"

#include <gtest/gtest.h>

#include "common/error.h"
#include "common/system/file.h"
#include "tests/unit/common/temporary_folder.h"

namespace muster::kube {
namespace {

using namespace std::chrono_literals;

class CredentialsTest : public ::testing::Test {
 protected:
  Config with_token_file() const {
    Config config;
    config.token.file = file_;
    return config;
  }
  void write(const std::string& text) const { write_file_atomically(file_, text); }

  const test::TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_.path() / "token";
  std::chrono::steady_clock::time_point now_;
  const Credentials::Clock clock_ = [this] { return now_; };
};

TEST_F(CredentialsTest, ReadsATokenAgainAfterAWhile) {
  write(" one\n");
  Credentials credentials(with_token_file(), 60s, clock_);
  EXPECT_EQ(credentials.current().authorization, "Bearer one");
  write("two");
  now_ += 59s;
  EXPECT_EQ(credentials.current().authorization, "Bearer one");
  now_ += 1s;
  EXPECT_EQ(credentials.current().authorization, "Bearer two");
  EXPECT_EQ(credentials.current().revision, 1U);  // no certificate has changed
}

TEST_F(CredentialsTest, ReadsItAgainAtOnceWhenItWasRefused) {
  write("one");
  Credentials credentials(with_token_file(), 60s, clock_);
  write("two");
  credentials.refused();
  EXPECT_EQ(credentials.current().authorization, "Bearer two");
}

TEST_F(CredentialsTest, WhatCannotBeReadLeavesWhatWasThere) {
  write("one");
  Credentials credentials(with_token_file(), 60s, clock_);
  std::filesystem::remove(file_);
  credentials.refused();
  EXPECT_EQ(credentials.current().authorization, "Bearer one");
  write("\n");  // truncated, to be written
  credentials.refused();
  EXPECT_EQ(credentials.current().authorization, "Bearer one");
}

TEST_F(CredentialsTest, TheFirstTimeItMustBeThereAndBeAToken) {
  EXPECT_THROW(Credentials(with_token_file(), 60s, clock_), Invalid);
  for (const char* text : {"", "two words", "line\r\nX-Injected: yes", "\x01", "ä"}) {
    write(text);
    EXPECT_THROW(Credentials(with_token_file(), 60s, clock_), Invalid) << text;
  }
}

TEST_F(CredentialsTest, ChangedCertificatesAreANewRevision) {
  write("authority one");
  Config config;
  config.authority.file = file_;
  config.certificate.text = "in place";
  Credentials credentials(config, 60s, clock_);
  EXPECT_EQ(credentials.current().authorization, "");
  EXPECT_EQ(credentials.current().revision, 1U);
  write("authority two");
  now_ += 60s;
  EXPECT_EQ(credentials.current().revision, 2U);
  EXPECT_EQ(credentials.current().tls.authority, "authority two");
  EXPECT_EQ(credentials.current().tls.certificate, "in place");
}

}  // namespace
}  // namespace muster::kube
