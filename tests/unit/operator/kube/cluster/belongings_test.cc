#include "operator/kube/cluster/belongings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/kube/cluster/kube_cluster_fixture.h"

namespace muster::kube {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

using BelongingsTest = KubeClusterTest;

TEST_F(BelongingsTest, NeverAdoptsAForeignService) {
  server().put({{"kind", "Service"}, {"metadata", {{"name", "mnist"}, {"namespace", "lab"}}}});
  world_.submit();
  world_.run_for(5s);
  EXPECT_EQ(world_.condition("Accepted"), "False NameConflict");
  EXPECT_EQ(server().count("POST pods"), 0);
}

TEST_F(BelongingsTest, MakesADeletedServiceAnew) {
  start();
  server().remove("services", "mnist");
  world_.settle();
  EXPECT_TRUE(server().has("services", "mnist"));
}

TEST_F(BelongingsTest, MakesAServiceAnewThatGoesWhileItIsMade) {
  server().loses_answer = [&](const Request& request) {
    if (request.method != Method::post || !request.path.ends_with("/services")) return false;
    server().loses_answer = nullptr;
    server().remove("services", "mnist");
    server().tell(world_.cluster().services(), "services");
    return false;
  };
  world_.submit();
  world_.settle();
  EXPECT_TRUE(server().has("services", "mnist"));
}

TEST_F(BelongingsTest, AServiceThatIsRefusedIsToldAndWaitedFor) {
  refuse_all(Method::post, "/services", refusal(403, "Forbidden", "exceeded quota: q"));
  world_.submit();
  world_.run_for(60s);
  EXPECT_THAT(message("Running"), HasSubstr("quota q holds the job up"));
  EXPECT_EQ(std::ranges::count(world_.events, "mnist: QuotaExceeded"), 1);
  EXPECT_LT(server().count("PUT trainingjobs/status"), 5);
  EXPECT_LT(server().count("POST services"), 20) << "once in a pass";
  server().intercept = nullptr;
  world_.run_for(60s);
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 ps-0.0 worker-0.0");
  EXPECT_EQ(world_.condition("Accepted"), "True Valid");
}

TEST_F(BelongingsTest, AServiceThatIsRefusedBesideLivePodsIsToldToo) {
  start();
  refuse_all(Method::post, "/services", refusal(403, "Forbidden", "no Service in this namespace"));
  server().remove("services", "mnist");
  world_.run_for(60s);
  EXPECT_EQ(world_.condition("Accepted"), "Unknown Unknown");
  EXPECT_THAT(message("Accepted"), HasSubstr("no Service in this namespace"));
  EXPECT_EQ(std::ranges::count(world_.events, "mnist: NotChecked"), 1);
  EXPECT_EQ(world_.condition("Running"), "True AllReplicasReady");
  EXPECT_LT(server().count("POST services"), 20) << "once in a pass";
  server().intercept = nullptr;
  world_.run_for(60s);
  EXPECT_TRUE(server().has("services", "mnist"));
  EXPECT_EQ(world_.condition("Accepted"), "True Valid");
}

// The Secret's name is written before the Secret, and the Secret before pods; it is never read.
TEST_F(BelongingsTest, MakesOneKeyPairBeforePods) {
  world_.submit("mnist", training());
  world_.settle();
  EXPECT_THAT(server().calls(), ElementsAre("POST pods dry", "PUT trainingjobs/status",
                                            "POST services", "POST secrets", "POST networkpolicies",
                                            "POST pods", "POST pods", "POST pods", "POST pods"));
  const std::string name = world_.job()["status"]["security"]["secret"];
  EXPECT_THAT(name, MatchesRegex("mnist-tls-[0-9a-f]{16}"));
  EXPECT_EQ(server().object("secrets", name)["metadata"]["ownerReferences"][0]["name"], "mnist");
}

TEST_F(BelongingsTest, AnOperatorThatComesAfterItsSecretGoesOnWithIt) {
  server().loses_answer = [&](const Request& request) {
    return request.method == Method::post && request.path.ends_with("/secrets");
  };
  world_.submit("mnist", training());
  world_.settle();
  EXPECT_EQ(server().count("POST pods"), 0);
  const std::string name = world_.job()["status"]["security"]["secret"];
  const Json made = server().object("secrets", name);
  server().loses_answer = nullptr;
  world_.restart_operator();
  world_.run_for(10s);
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 ps-0.0 worker-0.0");
  EXPECT_EQ(server().object("secrets", name), made);
  EXPECT_EQ(server().objects("secrets").size(), 1u);
}

// The job must not run open to everybody without a word.
TEST_F(BelongingsTest, NoPodIsMadeWithoutItsNetworkPolicy) {
  refuse_all(
      Method::post, "/networkpolicies",
      refusal(403, "Forbidden",
              "networkpolicies.networking.k8s.io is forbidden: User \"muster\" cannot create "
              "resource \"networkpolicies\""));
  world_.submit("mnist", training());
  world_.run_for(60s);
  EXPECT_EQ(server().count("POST pods"), 0);
  EXPECT_EQ(world_.condition("Accepted"), "Unknown Unknown");
  EXPECT_THAT(message("Accepted"), HasSubstr("cannot create resource \"networkpolicies\""));
  server().intercept = nullptr;
  world_.run_for(60s);
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 ps-0.0 worker-0.0");
  const Json policy = server().object("networkpolicies", "mnist-replicas");
  EXPECT_EQ(policy["metadata"]["ownerReferences"][0]["name"], "mnist");
  EXPECT_EQ(world_.condition("Accepted"), "True Valid");
}

TEST_F(BelongingsTest, AProgramOfOnesOwnHasNoNetworkPolicy) {
  start();
  EXPECT_EQ(server().count("POST networkpolicies"), 0);
}

// An operator that was upgraded beside a running job makes what the old one did not know.
TEST_F(BelongingsTest, AJobThatRunsGetsANetworkPolicyToo) {
  world_.submit("mnist", training());
  world_.settle();
  world_.run_all();
  server().remove("networkpolicies", "mnist-replicas");
  world_.restart_operator();
  world_.run_for(5s);
  EXPECT_TRUE(server().has("networkpolicies", "mnist-replicas"));
}

TEST_F(BelongingsTest, ANetworkPolicyThatSomebodyHasChangedIsAsItWasBeforeTheNextPod) {
  world_.submit("mnist", training());
  world_.settle();
  world_.run_all();
  const Json before = server().object("networkpolicies", "mnist-replicas");
  Json opened = before;
  opened["spec"]["ingress"].push_back(Json::object());
  opened["spec"]["podSelector"]["matchLabels"]["no"] = "such-pod";
  server().put(opened);
  world_.run_for(60s);
  server().end_pod(world_.pod("worker-0"), 1);
  server().forget_calls();
  world_.run_for(2s);
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 ps-0.0 worker-0.1");
  const std::vector<std::string> calls = server().calls();
  EXPECT_LT(std::ranges::find(calls, "PATCH networkpolicies"),
            std::ranges::find(calls, "POST pods"));
  EXPECT_EQ(server().object("networkpolicies", "mnist-replicas")["spec"], before["spec"]);
}

TEST_F(BelongingsTest, ABudgetOfDisruptionsFollowsTheNumberOfReplicas) {
  const auto stay = [&] {
    return server().object("poddisruptionbudgets", "mnist")["spec"]["minAvailable"];
  };
  world_.submit("mnist",
                {{"enableDynamicWorker", true}, {"schedulingPolicy", {{"maxUnavailable", 1}}}});
  world_.settle();
  world_.run_all();
  world_.settle();
  EXPECT_EQ(stay(), 3);
  scale(3);
  EXPECT_EQ(stay(), 5);
  change_spec({{"schedulingPolicy", {{"maxUnavailable", 0}}}});
  EXPECT_EQ(stay(), 6);
}

TEST_F(BelongingsTest, CreatesTheGroupOfAGang) {
  world_.submit("mnist", {{"schedulingPolicy", {{"gang", "volcano"}}}});
  world_.settle();
  EXPECT_EQ(server().object("podgroups", "mnist")["spec"]["minMember"], 4);
  EXPECT_EQ(server().count("POST podgroups"), 1);
}

TEST_F(BelongingsTest, TheGroupOfAGangFollowsTheNumberOfWorkers) {
  const auto members = [&] { return server().object("podgroups", "mnist")["spec"]["minMember"]; };
  world_.submit("mnist", {{"enableDynamicWorker", true},
                          {"schedulingPolicy", {{"gang", "volcano"}, {"queue", "night"}}}});
  world_.settle();
  world_.run_all();
  world_.settle();
  EXPECT_EQ(members(), 4);
  scale(3);
  EXPECT_EQ(members(), 6);
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 ps-0.0 worker-0.0 worker-1.0 worker-2.0");
  world_.restart_operator();
  scale(1);
  EXPECT_EQ(members(), 4);
  EXPECT_EQ(server().object("podgroups", "mnist")["spec"]["queue"], "night");
  EXPECT_EQ(server().count("PATCH podgroups"), 2);
}

// Its scheduler's webhook is down, or the scheduler not there at all.
TEST_F(BelongingsTest, AJobGoesOnWhosePodGroupIsRefused) {
  world_.submit("mnist", {{"schedulingPolicy", {{"gang", "volcano"}}}});
  world_.settle();
  world_.run_all();
  world_.settle();
  for (const Response& response : {refusal(500, "InternalError", "failed calling webhook"),
                                   refusal(422, "Invalid", "no queue"),
                                   refusal(404, "", "the server could not find the resource")}) {
    const int restarts = static_cast<int>(world_.job()["status"]["restarts"]);
    refuse_all(Method::post, "/podgroups", response);
    world_.restart_operator();
    server().end_pod(world_.pod("worker-0"), 1);
    world_.run_for(2s);
    EXPECT_EQ(world_.condition("Accepted"), "Unknown Unknown") << response.body;
    EXPECT_EQ(world_.job()["status"]["restarts"], restarts + 1) << response.body;
    server().intercept = nullptr;
    world_.run_for(60s);
    world_.run_all();
    world_.settle();
    EXPECT_EQ(world_.condition("Accepted"), "True Valid") << response.body;
    EXPECT_EQ(world_.condition("Running"), "True AllReplicasReady") << response.body;
  }
  refuse_all(Method::post, "/podgroups", refusal(500, "InternalError", "failed calling webhook"));
  world_.restart_operator();
  change_spec({{"suspend", true}});
  for (int i = 0; i < 4; ++i) {
    world_.settle();
    server().end_leaving_pods();
  }
  world_.run_for(1s);
  EXPECT_EQ(world_.condition("Suspended"), "True Suspended");
}

TEST_F(BelongingsTest, ADeletedGroupIsThereAgainBeforeTheNextPodOfItsGang) {
  world_.submit("mnist", {{"schedulingPolicy", {{"gang", "volcano"}}}});
  world_.settle();
  world_.run_all();
  world_.run_for(60s);
  server().remove("podgroups", "mnist");
  server().end_pod(world_.pod("worker-0"), 1);
  server().forget_calls();
  world_.run_for(2s);
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 ps-0.0 worker-0.1");
  const std::vector<std::string> calls = server().calls();
  EXPECT_LT(std::ranges::find(calls, "POST podgroups"), std::ranges::find(calls, "POST pods"));
  EXPECT_TRUE(server().has("podgroups", "mnist"));
}

TEST_F(BelongingsTest, AGangOfAGivenSizeKeepsIt) {
  world_.submit("mnist", {{"schedulingPolicy", {{"gang", "volcano"}, {"minAvailable", 2}}}});
  world_.settle();
  scale(3);
  EXPECT_EQ(server().object("podgroups", "mnist")["spec"]["minMember"], 2);
  EXPECT_EQ(server().count("PATCH podgroups"), 0);
}

}  // namespace
}  // namespace muster::kube
