#include <gtest/gtest.h>
#include <signal.h>

#include <condition_variable>
#include <fstream>
#include <mutex>

#include "common/documents/json.h"
#include "tests/integration/trainer/process.h"
#include "tests/unit/common/temporary_folder.h"
#include "tests/unit/operator/cmd/http_api.h"

namespace muster::integration {

namespace {

using cmd::HttpApi;

enum class Trouble { none, no_answer, put_off };

// muster-operator on a server that, from a word of the test's on, serves its lease and nothing else
// that it asks for.
class ShutdownTest : public testing::TestWithParam<Trouble> {
 protected:
  ShutdownTest() {
    const Json context = {{"name", "c"}, {"context", {{"cluster", "c"}, {"namespace", "system"}}}};
    const Json cluster = {{"name", "c"}, {"cluster", {{"server", api_.url()}}}};
    std::ofstream(folder_.path() / "kubeconfig")
        << Json{{"current-context", "c"}, {"contexts", {context}}, {"clusters", {cluster}}};
  }
  ~ShutdownTest() override { set(Trouble::none); }

  std::optional<HttpApi::Reply> answer(const HttpApi::Message& message) {
    if (message.target.find("/leases") != std::string::npos) return std::nullopt;
    std::unique_lock lock(mutex_);
    if (trouble_ == Trouble::none) return std::nullopt;
    ++refused_;
    if (trouble_ == Trouble::put_off) return HttpApi::Reply{429, "{}", {{"Retry-After", "25"}}};
    changed_.wait(lock, [this] { return trouble_ == Trouble::none; });
    return std::nullopt;
  }
  void set(Trouble trouble) {
    const std::lock_guard lock(mutex_);
    trouble_ = trouble;
    changed_.notify_all();
  }
  int refused() {
    const std::lock_guard lock(mutex_);
    return refused_;
  }
  std::string holder() {
    return api_.with([](auto& server) {
      if (!server.has("leases", "muster-operator")) return std::string();
      return string_or(server.object("leases", "muster-operator")["spec"], "holderIdentity", "");
    });
  }

  test::TemporaryFolder folder_;
  std::mutex mutex_;  // guards the next three
  std::condition_variable changed_;
  Trouble trouble_ = Trouble::none;
  int refused_ = 0;
  HttpApi api_{[this](const HttpApi::Message& message) { return answer(message); }};
};

TEST_P(ShutdownTest, GivesUpItsLeaseThoughOtherCallsAreUnderWay) {
  Process muster(
      {MUSTER_BINARY_DIR "/bin/muster-operator", "--kubeconfig", folder_.path() / "kubeconfig",
       "--http-address", "127.0.0.1:28081", "--lease-seconds", "3"},
      {}, folder_.path() / "log", {});
  ASSERT_TRUE(eventually([&] { return !holder().empty(); }));
  set(GetParam());
  api_.submit("mnist");
  ASSERT_TRUE(eventually([&] { return refused() > 0; }));
  const int before = api_.count("PUT leases");
  muster.signal(SIGTERM);
  EXPECT_EQ(muster.wait(), 0);
  EXPECT_EQ(holder(), "");
  // A call, and a pause that a server asks for, last for up to half a minute, in which the lease
  // would be renewed seventy times.
  EXPECT_LT(api_.count("PUT leases") - before, 20);
}

INSTANTIATE_TEST_SUITE_P(WithoutAnswers, ShutdownTest, testing::Values(Trouble::no_answer));
INSTANTIATE_TEST_SUITE_P(PutOff, ShutdownTest, testing::Values(Trouble::put_off));

}  // namespace

}  // namespace muster::integration
