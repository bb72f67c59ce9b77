#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "operator/kube/cache/reflector.h"
#include "operator/kube/http/http_transport.h"
#include "operator/kube/pods/names.h"
#include "tests/unit/operator/cmd/http_api.h"

namespace muster::cmd {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// Pods as long as those of a job of a thousand workers, on a smaller scale: 100 of 5 KB each, of
// which an answer may hold twelve.
constexpr int kPodCount = 100;
constexpr size_t kPodBytes = 5'000, kAnswerBytes = 64'000;

class LargeListsTest : public testing::Test {
 protected:
  LargeListsTest() {
    for (int i = 0; i < kPodCount; ++i) {
      const Json metadata = {{"name", "worker-" + std::to_string(i)},
                             {"namespace", "lab"},
                             {"labels", {{kube::kJobLabel, "mnist"}}},
                             {"annotations", {{"tf-config", std::string(kPodBytes, 'x')}}}};
      api_.with([&](auto& server) { server.put({{"kind", "Pod"}, {"metadata", metadata}}); });
    }
  }

  // Until the first list is whole.
  void list() {
    kube::Config config;
    config.server = api_.url();
    kube::Credentials credentials(config);
    prometheus::Registry registry;
    kube::HttpTransport::Settings limits;
    limits.largest_answer = kAnswerBytes;
    kube::HttpTransport transport(credentials, registry, limits);
    kube::Reflector::Settings settings;
    settings.resource = kube::pods();
    settings.label_selector = kube::kJobLabel;
    kube::Reflector reflector(
        transport, store_, settings,
        [this](const std::string& trouble, auto) { troubles_.push_back(trouble); },
        [](auto, const std::stop_token& stop) { return !stop.stop_requested(); }, [] { return 0; });
    const std::jthread thread([&](const std::stop_token& stop) { reflector.run(stop); });
    EXPECT_TRUE(reflector.wait_synced({}));
  }

  std::atomic<bool> pages_expire_ = false;  // the next time that one is gone on from
  HttpApi api_{[this](const HttpApi::Message& message) -> std::optional<HttpApi::Reply> {
    const bool goes_on = message.target.find("continue=") != std::string::npos;
    if (!goes_on || !pages_expire_.exchange(false)) return std::nullopt;
    return HttpApi::Reply{410, R"({"kind":"Status","code":410,"reason":"Expired"})", {}};
  }};
  kube::Store<kube::Pod> store_;
  std::vector<std::string> troubles_;
};

TEST_F(LargeListsTest, AreReadInPagesThatAnAnswerCanHold) {
  list();
  EXPECT_EQ(store_.size(), static_cast<size_t>(kPodCount));
  EXPECT_THAT(troubles_, Contains(HasSubstr("expected an answer of at most 64000 bytes")));
}

TEST_F(LargeListsTest, AreReadInPagesThoughTheseHaveExpiredBefore) {
  pages_expire_ = true;
  list();
  EXPECT_EQ(store_.size(), static_cast<size_t>(kPodCount));
  EXPECT_THAT(troubles_, Contains(HasSubstr("410 Expired")));
}

}  // namespace
}  // namespace muster::cmd
