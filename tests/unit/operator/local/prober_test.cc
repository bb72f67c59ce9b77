#include "operator/local/prober.h"

#include <gtest/gtest.h>

#include <atomic>

#include "common/net/http_server.h"
#include "operator/local/processes/ports.h"

namespace muster::local {
namespace {

using namespace std::chrono_literals;

// What never happens is noticed; nothing is measured by it.
template <class Condition>
bool eventually(Condition condition) {
  const auto until = std::chrono::steady_clock::now() + 1min;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

class Replica {
 public:
  Replica() {
    std::map<std::string, int> ports;
    choose_ports({"replica"}, ports);
    address_ = "127.0.0.1:" + std::to_string(ports["replica"]);
    server_.emplace(address_);
    server_->handle("/healthz", [this] { return HttpReply{well ? 200 : 503, "text/plain", "ok"}; });
    server_->start();
  }
  const std::string& address() const { return address_; }
  std::atomic<bool> well{true};

 private:
  std::string address_;
  std::optional<HttpServer> server_;
};

TEST(Prober, notices_when_a_ready_replica_answers_no_more_and_when_it_does_again) {
  Replica replica;
  std::atomic<int> ready = 0;
  Prober prober([&] { ++ready; });
  prober.watch("worker-0-0", replica.address(), false);
  ASSERT_TRUE(eventually([&] { return prober.is_ready("worker-0-0"); }));
  EXPECT_EQ(prober.silence("worker-0-0"), 0s);
  replica.well = false;
  EXPECT_TRUE(eventually([&] { return prober.silence("worker-0-0") > 0s; }));
  replica.well = true;
  EXPECT_TRUE(eventually([&] { return prober.silence("worker-0-0") == 0s; }));
  EXPECT_EQ(ready, 1);
}

TEST(Prober, does_not_call_silent_what_was_never_ready) {
  Replica replica;
  replica.well = false;
  Prober prober([] {});
  prober.watch("late", replica.address(), false);
  Replica other;
  prober.watch("other", other.address(), false);
  ASSERT_TRUE(eventually([&] { return prober.is_ready("other"); }));
  EXPECT_FALSE(prober.is_ready("late"));
  EXPECT_EQ(prober.silence("late"), 0s);
  prober.forget("other");
  EXPECT_FALSE(prober.is_ready("other"));
}

}  // namespace
}  // namespace muster::local
