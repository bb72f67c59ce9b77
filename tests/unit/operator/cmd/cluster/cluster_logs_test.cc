#include "operator/cmd/cluster/cluster_logs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "common/error.h"
#include "common/exit_code.h"
#include "operator/cmd/cluster/pod_log.h"
#include "tests/unit/operator/cmd/cluster/cluster_answers.h"

namespace muster::cmd {
namespace {

using kube::FakeTransport;
using kube::Request;
using kube::Response;
using ::testing::HasSubstr;

// A job of one worker: pending, then running, then finished; its log comes in two connections.
class ClusterLogsTest : public ::testing::Test {
 protected:
  Response send(const Request& request) {
    if (request.path == kJob) {
      const bool over = looks_++ > 20 && streams_ > 1;
      return ok(over ? job({{"conditions", Json::array({condition("Finished")})}}) : job());
    }
    if (request.path == kPods) {
      const Json waiting = {{"waiting", {{"reason", "ContainerCreating"}}}};
      const Json running = {{"running", Json::object()}};
      return ok({{"items", Json::array({pod(looks_ < 3 ? waiting : running)})}});
    }
    return kube::answer(200,
                        "2026-01-02T03:04:05Z one\n2026-01-02T03:04:06.25Z two\n"
                        "2026-01-02T03:04:07Z thr");
  }
  kube::StreamEnd stream(const kube::Transport::OnLine& on_line) {
    if (++streams_ == 1) on_line("2026-01-02T03:04:05Z one");
    on_line("2026-01-02T03:04:06.25Z two");
    return {};
  }

  FakeTransport transport_{[this](const Request& request) { return send(request); },
                           [this](const Request&, const kube::Transport::OnLine& on_line,
                                  const std::stop_token&) { return stream(on_line); }};
  std::atomic<int> looks_ = 0;
  std::atomic<int> streams_ = 0;
};

TEST_F(ClusterLogsTest, waits_while_pending_and_shows_each_line_once) {
  ClusterLogOptions options;
  options.job = "mnist";
  options.follow = true;
  options.every = std::chrono::milliseconds(1);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  EXPECT_EQ(show_cluster_logs(access(transport_), options), kSuccess);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "worker-0 | one\nworker-0 | two\nworker-0 | thr\n");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("mnist: waiting: Pending"));
}

// Two workers that write in turns; the node of the second one answers later.
TEST(ClusterLogs, shows_what_several_logs_hold_in_the_order_of_time) {
  std::atomic<int> looks = 0;
  Json two = job();
  two["spec"]["replicaSpecs"]["worker"]["replicas"] = 2;
  const auto send = [&](const Request& request) {
    if (request.path == kJob) {
      if (looks++ > 20) two["status"] = {{"conditions", Json::array({condition("Finished")})}};
      return ok(two);
    }
    if (request.path == kPods) {
      const Json running = {{"running", Json::object()}};
      return ok({{"items", {pod(running, 0), pod(running, 1)}}});
    }
    const bool second = request.path.find("worker-1") != std::string::npos;
    if (second) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const char* const text = second ? "2026-01-02T03:04:05Z one\n2026-01-02T03:04:07Z three\n"
                                    : "2026-01-02T03:04:06Z two\n2026-01-02T03:04:08Z four\n";
    return kube::answer(200, text);
  };
  FakeTransport transport(send, [](const Request&, const kube::Transport::OnLine&,
                                   const std::stop_token&) { return kube::StreamEnd{}; });
  for (const bool follow : {false, true}) {
    ClusterLogOptions options;
    options.job = "mnist";
    options.follow = follow;
    options.tail = 2;
    options.every = std::chrono::milliseconds(1);
    testing::internal::CaptureStdout();
    EXPECT_EQ(show_cluster_logs(access(transport), options), kSuccess);
    EXPECT_EQ(testing::internal::GetCapturedStdout(),
              "worker-1 | one\nworker-0 | two\nworker-1 | three\nworker-0 | four\n")
        << follow;
  }
}

TEST_F(ClusterLogsTest, makes_text_of_what_trainers_log_as_muster_run_has_it) {
  const std::string logged =
      R"({"time":"2026-01-02T03:04:06.250Z","level":"info","name":"mnist-worker-0","message":"hi","n":1})";
  FakeTransport transport([&](const Request& request) {
    if (request.path == kJob) return ok(job());
    if (request.path == kPods) {
      return ok({{"items", Json::array({pod({{"running", Json::object()}})})}});
    }
    return kube::answer(200, "2026-01-02T03:04:06.25Z " + logged + "\n2026-01-02T03:04:07Z bye");
  });
  ClusterLogOptions options;
  options.job = "mnist";
  const auto shown = [&] {
    testing::internal::CaptureStdout();
    EXPECT_EQ(show_cluster_logs(access(transport), options), kSuccess);
    return testing::internal::GetCapturedStdout();
  };
  const std::string text = shown();
  EXPECT_TRUE(text.starts_with("worker-0 | ")) << text;
  EXPECT_THAT(text, HasSubstr(" info hi\nworker-0 | bye\n"));
  options.json = true;
  EXPECT_EQ(shown(), R"({"replica":"worker-0",)" + logged.substr(1) + "\n" +
                         R"({"replica":"worker-0","time":"2026-01-02T03:04:07Z","message":"bye"})" +
                         "\n");
}

TEST_F(ClusterLogsTest, says_without_follow_that_nothing_has_started) {
  ClusterLogOptions options;
  options.job = "mnist";
  EXPECT_THROW(show_cluster_logs(access(transport_), options), Unavailable);
  options.replicas = {"chief"};
  EXPECT_THROW(show_cluster_logs(access(transport_), options), Invalid);
  options.replicas = {"worker"};
  looks_ = 3;
  testing::internal::CaptureStdout();
  EXPECT_EQ(show_cluster_logs(access(transport_), options), kSuccess);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "worker-0 | one\nworker-0 | two\nworker-0 | thr\n");
  EXPECT_EQ(kube::query(transport_.requests().back(), "container"), "tensorflow");
}

TEST(LogTime, reads_what_nodes_write) {
  EXPECT_EQ(log_time("1970-01-01T00:00:01.5Z"), 1'500'000'000);
  EXPECT_EQ(log_time("1970-01-01T01:00:00.000000007+01:00"), 7);
  EXPECT_EQ(log_time("1969-12-31T23:00:00-01:00"), 0);
  for (const char* text :
       {"", "step", "1970-01-01T00:00:01", "1970-01-01T00:00:01.5", "1970-13-01T00:00:01Z"}) {
    EXPECT_EQ(log_time(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace muster::cmd
