#include "operator/kube/http/config.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "common/error.h"
#include "common/system/file.h"
#include "tests/unit/common/temporary_folder.h"

namespace muster::kube {
namespace {

using ::testing::HasSubstr;

const char* const kKubeconfig = R"(
apiVersion: v1
kind: Config
current-context: dev
contexts:
- {name: other, context: {cluster: remote, user: nobody}}
- {name: dev, context: {cluster: local, user: me, namespace: team}}
clusters:
- {name: remote, cluster: {server: "https://remote", tls-server-name: kubernetes, certificate-authority: ca.crt}}
- {name: local, cluster: {server: "https://127.0.0.1:6443", certificate-authority-data: QUJDRA==}}
users:
- {name: me, user: {client-certificate-data: QUJDREU=, client-key-data: QUJD}}
- {name: nobody, user: {token: in-place, tokenFile: tokens/one}}
- {name: cloud, user: {exec: {command: aws}}}
)";

class ConfigTest : public ::testing::Test {
 protected:
  ConfigTest() {
    for (const char* name : {"KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"}) {
      unsetenv(name);
    }
  }

  std::filesystem::path write(const std::string& name, const std::string& text) const {
    write_file_atomically(folder_ / name, text);
    return folder_ / name;
  }
  // What load_kubeconfig says of the text.
  std::string error_of(const std::string& text, const std::string& context = {}) const {
    try {
      load_kubeconfig(write("bad", text), context);
    } catch (const Invalid& error) {
      return error.what();
    }
    return "no error";
  }
  static std::string with(std::string before, std::string after) {
    std::string text = kKubeconfig;
    return text.replace(text.find(before), before.size(), after);
  }

  const test::TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
};

TEST_F(ConfigTest, ReadsTheCurrentContext) {
  const Config config = load_kubeconfig(write("config", kKubeconfig));
  EXPECT_EQ(config.server, "https://127.0.0.1:6443");
  EXPECT_EQ(config.name_space, "team");
  EXPECT_EQ(config.authority.text, "ABCD");
  EXPECT_EQ(config.certificate.text, "ABCDE");
  EXPECT_EQ(config.key.text, "ABC");
  EXPECT_TRUE(config.token.empty());
}

TEST_F(ConfigTest, ReadsAnotherContextWithFilesBesideIt) {
  const Config config = load_kubeconfig(write("config", kKubeconfig), "other");
  EXPECT_EQ(config.server, "https://remote");
  EXPECT_EQ(config.tls_server_name, "kubernetes");
  EXPECT_EQ(config.name_space, "default");
  EXPECT_EQ(config.authority.file, folder_ / "ca.crt");
  EXPECT_EQ(config.token.file, folder_ / "tokens/one");
  EXPECT_TRUE(config.token.text.empty());
}

TEST_F(ConfigTest, SaysWhatIsMissingAndWhatItCannotDo) {
  EXPECT_THAT(error_of(kKubeconfig, "none"),
              HasSubstr("contexts: expected an entry named 'none', found none"));
  EXPECT_THAT(error_of(with("current-context: dev", "")), HasSubstr("current-context"));
  EXPECT_THAT(error_of(with("cluster: local,", "cluster: gone,")), HasSubstr("named 'gone'"));
  EXPECT_THAT(error_of(with("server: \"https://127.0.0.1:6443\", ", "")),
              HasSubstr("clusters[1].cluster: expected a server"));
  EXPECT_THAT(error_of(with("user: me,", "user: cloud,")),
              HasSubstr("users[2].user.exec: Muster does not support this"));
  EXPECT_THAT(error_of(with("QUJDRA==", "a!")), HasSubstr("expected base64"));
  EXPECT_THAT(error_of(with(", client-key-data: QUJD", "")), HasSubstr("expected both"));
  EXPECT_THAT(
      error_of(with("certificate-authority-data: QUJDRA==", "insecure-skip-tls-verify: true")),
      HasSubstr("insecure-skip-tls-verify: Muster does not support this"));
  EXPECT_THAT(error_of("- just\n- a list\n"), HasSubstr("current-context"));
}

TEST_F(ConfigTest, InAPodItIsTheServiceAccount) {
  write("namespace", "system");
  EXPECT_THROW(in_cluster_config(folder_), Invalid);
  setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1", 1);
  setenv("KUBERNETES_SERVICE_PORT", "443", 1);
  const Config config = in_cluster_config(folder_);
  EXPECT_EQ(config.server, "https://10.96.0.1:443");
  EXPECT_EQ(config.token.file, folder_ / "token");
  EXPECT_EQ(config.authority.file, folder_ / "ca.crt");
  EXPECT_EQ(config.name_space, "system");
  setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
  EXPECT_EQ(in_cluster_config(folder_).server, "https://[fd00::1]:443");
}

TEST_F(ConfigTest, WhatIsNamedComesFirst) {
  const std::filesystem::path named = write("named", kKubeconfig);
  const std::filesystem::path other = write("other", with("127.0.0.1", "127.0.0.2"));
  setenv("KUBECONFIG", other.c_str(), 1);
  EXPECT_EQ(find_config(named).server, "https://127.0.0.1:6443");
  EXPECT_EQ(find_config().server, "https://127.0.0.2:6443");
  setenv("KUBECONFIG", (named.string() + ":" + other.string()).c_str(), 1);
  EXPECT_THROW(find_config(), Invalid);
}

}  // namespace
}  // namespace muster::kube
