#include "operator/kube/cluster/replica_observer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "common/job/termination_message.h"
#include "operator/kube/pods/names.h"
#include "tests/unit/operator/kube/cluster/kube_cluster_fixture.h"

namespace muster::kube {
namespace {

using namespace std::chrono_literals;

using ReplicaObserverTest = KubeClusterTest;

TEST_F(ReplicaObserverTest, TheStatusOfASuccessHasWhereTrainingEnded) {
  start();
  const std::string chief = world_.pod("chief-0");
  Json status = Json::parse(R"({"phase": "Succeeded", "containerStatuses": [
      {"name": "tensorflow", "state": {"terminated": {"exitCode": 0}}}]})");
  status["containerStatuses"][0]["state"]["terminated"]["message"] = TerminationMessage{
      0,
      "done",
      {{"step", 1564}, {"totalSteps", 1564}, {"loss", "0.25"}}}.text();
  server().set_status(chief, status);
  world_.settle();
  const Json ended = Json::parse(R"({"loss": "0.25", "step": 1564, "totalSteps": 1564})");
  EXPECT_EQ(world_.job()["status"]["progress"], ended);
  world_.restart_operator();
  world_.settle();
  EXPECT_EQ(world_.job()["status"]["progress"], ended);
}

TEST_F(ReplicaObserverTest, TheStatusOfASuccessHasWhatTheTrainingHasComeTo) {
  start();
  const auto ends = [&](const char* replica, const Json& results) {
    Json status = Json::parse(R"({"phase": "Succeeded", "containerStatuses": [
        {"name": "tensorflow", "state": {"terminated": {"exitCode": 0}}}]})");
    status["containerStatuses"][0]["state"]["terminated"]["message"] =
        TerminationMessage{0, "done", {}, results}.text();
    server().set_status(world_.pod(replica), status);
    world_.settle();
  };
  ends("chief-0", {{"step", 7}, {"exportedStep", 7}, {"model", "/muster/model"}});
  EXPECT_EQ(world_.job()["status"]["results"]["model"], "/muster/model");
  ends("evaluator-0", {{"exportedStep", 7}, {"test", {{"accuracy", 0.5}}}});
  for (int i = 0; i < 4; ++i) {
    world_.settle();
    server().end_leaving_pods();
  }
  world_.settle();
  EXPECT_EQ(world_.condition("Finished"), "True ChiefSucceeded");
  const Json results = world_.job()["status"]["results"];
  EXPECT_EQ(results["test"]["accuracy"], 0.5);
  world_.restart_operator();
  world_.settle();
  EXPECT_EQ(world_.job()["status"]["results"], results);
}

// Their images would not answer, and might keep others waiting.
TEST_F(ReplicaObserverTest, AsksNoJobWithoutTrainingForItsProgress) {
  std::promise<std::string> asked;
  world_.ask_progress = [&, first = std::make_shared<std::atomic<bool>>(true)](
                            const std::string& address) -> std::string {
    if (first->exchange(false)) asked.set_value(address);
    return R"({"step": 3})";
  };
  world_.restart_operator();
  start();
  world_.submit("trained", training());
  world_.settle();
  world_.run_all();
  server().set_status(world_.pod("chief-0", "trained"), {{"podIP", "10.0.0.8"}});
  world_.run_for(5s);
  EXPECT_EQ(world_.condition("Accepted", "trained"), "True Valid");
  const std::jthread poller(
      [this](const std::stop_token& stop) { world_.cluster().poll_progress(stop); });
  EXPECT_EQ(asked.get_future().get(), "10.0.0.8:8080") << "though mnist is due for longer";
}

TEST_F(ReplicaObserverTest, APodOnALostNodeDoesNotBlockItsSuccessor) {
  start();
  const std::string lost = world_.pod("worker-0");
  server().put({{"kind", "Node"},
                {"metadata", {{"name", "node-1"}}},
                {"spec",
                 {{"taints", Json::array({{{"key", "node.kubernetes.io/unreachable"},
                                           {"effect", "NoExecute"}}})}}}});
  server().set_status(lost,
                      {{"conditions", Json::array({{{"type", "DisruptionTarget"},
                                                    {"status", "True"},
                                                    {"reason", "DeletionByTaintManager"}}})}});
  server().remove("pods", lost);
  world_.run_for(2s);
  ASSERT_TRUE(server().has("pods", lost)) << "nobody has said that it ended";
  EXPECT_FALSE(server().object("pods", lost)["metadata"]["labels"].contains(kCurrentLabel));
  EXPECT_NE(world_.pod("worker-0"), lost);
  EXPECT_EQ(server().object("pods", world_.pod("worker-0"))["metadata"]["labels"][kCurrentLabel],
            "true");
  EXPECT_EQ(world_.job()["status"]["restarts"], 0) << "a disruption";
  const std::vector<std::string> calls = server().calls();
  EXPECT_LT(std::ranges::find(calls, "PATCH pods") - calls.begin(),
            std::find(calls.rbegin(), calls.rend(), "POST pods").base() - calls.begin());
}

TEST_F(ReplicaObserverTest, APodOnANodeThatLivesIsWaitedFor) {
  start();
  const std::string leaving = world_.pod("worker-0");
  server().put(
      {{"kind", "Node"},
       {"metadata", {{"name", "node-1"}}},
       {"status", {{"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})}}}});
  server().set_status(leaving,
                      {{"conditions", Json::array({{{"type", "DisruptionTarget"},
                                                    {"status", "True"},
                                                    {"reason", "DeletionByTaintManager"}}})}});
  server().remove("pods", leaving);
  world_.run_for(2s);
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 ps-0.0 worker-0.0");
  server().end_pod(leaving, 143);
  world_.run_for(2s);
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 ps-0.0 worker-0.1");
}

TEST_F(ReplicaObserverTest, LooksAgainWhetherTheNodeOfAPodThatLeavesHasBeenLost) {
  start();
  const std::string leaving = world_.pod("worker-0");
  Json node = {
      {"kind", "Node"},
      {"metadata", {{"name", "node-1"}}},
      {"status", {{"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})}}}};
  server().put(node);
  server().set_status(leaving,
                      {{"conditions", Json::array({{{"type", "DisruptionTarget"},
                                                    {"status", "True"},
                                                    {"reason", "DeletionByTaintManager"}}})}});
  server().remove("pods", leaving);
  world_.run_for(2s);
  EXPECT_EQ(world_.pod("worker-0"), leaving) << "it is waited for";
  node["status"]["conditions"][0]["status"] = "Unknown";
  server().put(node);  // nobody hears of that
  world_.run_for(15s);
  EXPECT_NE(world_.pod("worker-0"), leaving);
}

}  // namespace
}  // namespace muster::kube
