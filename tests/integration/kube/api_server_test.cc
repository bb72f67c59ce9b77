#include "tests/integration/kube/api_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/documents/document.h"

namespace muster::integration {

namespace {

using ::testing::HasSubstr;

std::string config_map(const std::string& name, const std::string& value) {
  return Json{{"apiVersion", "v1"},
              {"kind", "ConfigMap"},
              {"metadata", {{"name", name}}},
              {"data", {{"key", value}}}}
      .dump();
}

TEST(ApiServerTest, KeepsObjectsOverKillsOfBothPrograms) {
  ApiServer server;
  const auto created = server.kubectl({"create", "-f", "-"}, config_map("one", "first"));
  ASSERT_EQ(created.code, 0) << created.text;

  server.kill(ApiServer::kServer);
  EXPECT_NE(server.kubectl({"get", "configmap", "one"}).code, 0);
  server.kill(ApiServer::kEtcd);
  server.start(ApiServer::kEtcd);
  server.start(ApiServer::kServer);
  server.await_ready();

  const auto got = server.kubectl({"get", "configmap", "one", "-o", "jsonpath={.data.key}"});
  EXPECT_EQ(got.code, 0);
  EXPECT_EQ(got.text, "first");
}

TEST(ApiServerTest, RefusesAWatchFromARevisionThatIsCompacted) {
  ApiServer server;
  const auto created = server.kubectl({"create", "-f", "-", "-o", "json"}, config_map("one", "1"));
  ASSERT_EQ(created.code, 0) << created.text;
  const std::string version = Json::parse(created.text).at("metadata").at("resourceVersion");
  ASSERT_EQ(server.kubectl({"delete", "configmap", "one"}).code, 0);
  server.compact();
  server.kill(ApiServer::kServer, SIGTERM);  // it remembers events itself
  server.start(ApiServer::kServer);
  server.await_ready();

  const auto watched = server.kubectl(
      {"get", "--raw",
       "/api/v1/configmaps?watch=true&timeoutSeconds=10&resourceVersion=" + version});
  EXPECT_THAT(watched.text, HasSubstr("\"code\":410"));
}

}  // namespace

}  // namespace muster::integration
