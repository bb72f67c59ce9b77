#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "common/documents/json.h"
#include "common/error.h"
#include "operator/kube/cluster/kube_cluster.h"
#include "operator/kube/pods/names.h"
#include "tests/unit/operator/kube/cluster/kube_cluster_fixture.h"

namespace muster::kube {
namespace {

using namespace std::chrono_literals;
using testing::Contains;

// A job whose chief and evaluator are on node-1 and whose ps and worker are on node-2, with a Lease
// of each node.
class NodeLossTest : public testing::Test {
 protected:
  void start(const Json& spec = training()) {
    world_.ask_progress = [this](const std::string&) {
      const std::string answer = answer_;
      asked_ = true;
      asked_.notify_all();
      if (answer.empty()) throw Unavailable("no answer");
      return answer;
    };
    world_.restart_operator();
    world_.submit("mnist", spec);
    world_.settle();
    for (const auto& [replica, node] : std::map<std::string, std::string>{{"chief-0", "node-1"},
                                                                          {"evaluator-0", "node-1"},
                                                                          {"ps-0", "node-2"},
                                                                          {"worker-0", "node-2"}}) {
      Json pod = server().object("pods", world_.pod(replica));
      pod["spec"]["nodeName"] = node;
      server().put(pod);
      server().run_pod(world_.pod(replica));
    }
    renew("node-1");
    renew("node-2");
    world_.settle();
  }
  void renew(const std::string& node) {
    server().put({{"kind", "Lease"},
                  {"metadata", {{"name", node}, {"namespace", "kube-node-lease"}}},
                  {"spec", {{"renewTime", std::to_string(++renewals_)}}}});
  }
  // Lets the time pass while only the kubelet of this node renews its Lease.
  void run_while_renewed(const std::string& node, std::chrono::seconds time) {
    for (auto left = time; left > 0s; left -= 5s) {
      renew(node);
      world_.run_for(5s);
    }
  }
  // Lets the chief answer this, or nothing at all if it is "".
  void chief_says(const std::string& answer) {
    answer_ = answer;
    asked_ = false;
    std::jthread poller([&](const std::stop_token& stop) { world_.cluster().poll_progress(stop); });
    asked_.wait(false);
    poller.request_stop();
    poller.join();
    world_.settle();
  }
  int leases_asked() { return server().count("GET leases"); }
  bool is_leaving(const std::string& pod) {
    return server().object("pods", pod)["metadata"].contains("deletionTimestamp");
  }
  FakeApiServer& server() { return world_.server; }

  KubeWorld world_;
  std::string answer_;
  std::atomic<bool> asked_ = false;
  int renewals_ = 0;
};

constexpr const char* kMissesTheWorker = R"({"step": 5, "missing": ["worker-0"]})";

TEST_F(NodeLossTest, WhomTheChiefMissesOnANodeThatIsSilentIsReplaced) {
  start();
  const std::string lost = world_.pod("worker-0");
  chief_says(kMissesTheWorker);
  world_.run_for(14s);
  EXPECT_EQ(world_.pod("worker-0"), lost);
  world_.run_for(2s);
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 ps-0.0 worker-0.0 worker-0.1")
      << "nobody has missed the ps";
  EXPECT_TRUE(is_leaving(lost));
  EXPECT_FALSE(server().object("pods", lost)["metadata"]["labels"].contains(kCurrentLabel));
  EXPECT_EQ(world_.job()["status"]["state"], "Recovering");
  EXPECT_EQ(world_.condition("Restarting"), "True NodeLost");
  world_.run_all();
  run_while_renewed("node-1", 30s);
  EXPECT_EQ(world_.condition("Running"), "True AllReplicasReady");
  EXPECT_TRUE(server().has("pods", lost)) << "nobody has said that it ended";
  renew("node-2");
  run_while_renewed("node-1", 10s);
  server().end_leaving_pods(1);
  run_while_renewed("node-1", 10s);
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 ps-0.0 worker-0.1");
  EXPECT_EQ(world_.job()["status"]["restarts"], 0);
  EXPECT_EQ(world_.condition("Running"), "True AllReplicasReady");
}

TEST_F(NodeLossTest, NobodyIsReplacedWhileTheNodeRenewsItsLease) {
  start();
  chief_says(kMissesTheWorker);
  for (int i = 0; i < 10; ++i) {
    world_.run_for(10s);
    renew("node-2");
  }
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 ps-0.0 worker-0.0");
  EXPECT_GT(leases_asked(), 0);
}

TEST_F(NodeLossTest, ANodeIsAskedAboutOnlyWhereSomebodyIsMissed) {
  start();
  chief_says(R"({"step": 5, "missing": []})");
  world_.run_for(60s);
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 ps-0.0 worker-0.0");
  EXPECT_EQ(leases_asked(), 0);
}

TEST_F(NodeLossTest, WithAChiefThatIsLostAllOnItsNodeAre) {
  start();
  chief_says("");
  world_.run_for(16s);
  EXPECT_EQ(world_.pods(), "chief-0.0 chief-0.1 evaluator-0.0 evaluator-0.1 ps-0.0 worker-0.0");
  EXPECT_EQ(world_.job()["status"]["restarts"], 0);
}

TEST_F(NodeLossTest, AChiefThatTheOperatorAloneCannotReachIsLeftAlone) {
  start();
  chief_says("");
  for (int i = 0; i < 10; ++i) {
    world_.run_for(10s);
    renew("node-1");
  }
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 ps-0.0 worker-0.0");
}

TEST_F(NodeLossTest, NothingFollowsWhereLeasesMayNotBeLookedAt) {
  start();
  server().intercept = [](const Request& request) {
    const bool lease = request.path.find("/leases/") != std::string::npos;
    return lease ? std::optional(refusal(403, "Forbidden", "leases is forbidden")) : std::nullopt;
  };
  chief_says(kMissesTheWorker);
  for (int i = 0; i < 10; ++i) {
    server().set_status(world_.pod("ps-0"), {{"podIP", "10.0.0." + std::to_string(i)}});
    world_.settle();
  }
  EXPECT_EQ(leases_asked(), 1) << "not in each pass";
  world_.run_for(60s);
  EXPECT_LE(leases_asked(), 13);
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 ps-0.0 worker-0.0");
  EXPECT_TRUE(world_.troubles.empty());
}

TEST_F(NodeLossTest, AnOperatorThatWasCutOffFromTheApiServerBeginsAnew) {
  start();
  chief_says(kMissesTheWorker);
  world_.run_for(9s);
  server().intercept = [](const Request&) {
    return std::optional(refusal(500, "InternalError", "no etcd"));
  };
  world_.run_for(30s);
  server().intercept = nullptr;
  world_.run_for(10s);
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 ps-0.0 worker-0.0");
}

// The kubelet does not see such a restart, because the container goes on.
TEST_F(NodeLossTest, ARestartInPlaceThatTheChiefTellsOfIsCountedAndTold) {
  start();
  chief_says(R"({"step": 5, "restartsInPlace": [{"replica": "worker-0", "attempt": 0,
                 "restarts": 1, "exitCode": 137, "seconds": 2.13}]})");
  EXPECT_EQ(world_.job()["status"]["restarts"], 1);
  EXPECT_EQ(world_.job()["status"]["replicaStatuses"]["worker"]["restarts"], 1);
  EXPECT_EQ(std::ranges::count(world_.events, "mnist: RestartedInPlace"), 1);
  EXPECT_THAT(
      world_.messages,
      Contains("worker-0 was restarted in place after exit code 137 (terminated (SIGKILL)); "
               "training went on 2.1 s after that"));
  world_.run_for(60s);
  EXPECT_EQ(world_.job()["status"]["restarts"], 1);
}

TEST_F(NodeLossTest, WhatTheChiefSaysOfAnEarlierAttemptCountsNothing) {
  start();
  chief_says(R"({"step": 5, "restartsInPlace": [{"replica": "worker-0", "attempt": 3,
                 "restarts": 1, "exitCode": 137, "seconds": 2}, 7, {"replica": 9}]})");
  EXPECT_EQ(world_.job()["status"]["restarts"], 0);
}

TEST_F(NodeLossTest, APodThatHangsInPendingIsExplainedByItsEvents) {
  world_.submit("mnist", training());
  world_.settle();
  const Json pod = server().object("pods", world_.pod("chief-0"));
  Json event = {{"kind", "Event"},
                {"metadata", {{"name", "e"}, {"namespace", "lab"}}},
                {"involvedObject", {{"uid", pod["metadata"]["uid"]}}},
                {"type", "Warning"},
                {"reason", "FailedMount"},
                {"message", "configmap \"a\" not found"},
                {"lastTimestamp", "2026-01-02T03:04:05Z"}};
  server().put(event);
  world_.run_for(4s);
  EXPECT_EQ(server().count("GET events"), 0);
  world_.run_for(6s);
  EXPECT_GT(server().count("GET events"), 0);
  EXPECT_EQ(world_.job()["status"]["cause"], "chief-0: FailedMount: configmap \"a\" not found");
  EXPECT_THAT(world_.messages,
              Contains("chief-0: FailedMount: configmap \"a\" not found").Times(1));
  event["message"] = "configmap \"b\" not found";
  server().put(event);
  world_.run_for(60s);
  EXPECT_EQ(world_.job()["status"]["cause"], "chief-0: FailedMount: configmap \"b\" not found");
  EXPECT_EQ(std::ranges::count(world_.events, "mnist: ReplicaPending"), 2);
  world_.run_all();
  world_.run_for(5s);
  EXPECT_FALSE(world_.job()["status"].contains("cause"));
}

}  // namespace
}  // namespace muster::kube
