#include "operator/cmd/operator/operator_release.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "common/documents/json.h"
#include "operator/kube/pods/names.h"
#include "tests/unit/operator/kube/fake_api_server.h"
#include "tests/unit/operator/kube/fake_transport.h"

namespace muster::cmd {
namespace {

using namespace std::chrono_literals;
using kube::FakeApiServer;
using kube::FakeTransport;
using kube::Method;
using kube::Request;
using kube::Response;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Json pod(const std::string& name, const Json& finalizers) {
  return {{"kind", "Pod"},
          {"metadata",
           {{"name", name},
            {"namespace", "lab"},
            {"labels", {{kube::kJobLabel, "mnist"}}},
            {"finalizers", finalizers}}},
          {"spec", {{"nodeName", "node-1"}}},
          {"status", {{"phase", "Running"}}}};
}

Json operator_pod() {
  return {{"kind", "Pod"}, {"metadata", {{"name", "muster-0"}, {"namespace", "system"}}}};
}

// An API server with pods of jobs and a Deployment of operators, which is not there in reality:
// what its scale does is for a test to say.
class ReleaseTest : public testing::Test {
 protected:
  ReleaseTest() {
    options_.lease.name_space = "system";
    options_.lease.identity = "release";
    options_.lease.every = 1ms;
    options_.pause = 1ms;
    options_.deployment = {"system", "muster"};
    server_.put({{"kind", "Deployment"},
                 {"metadata", {{"name", "muster"}, {"namespace", "system"}}},
                 {"spec", {{"replicas", 2}}},
                 {"status", {{"selector", "app=muster"}}}});
  }

  void run(const std::stop_token& stop = {}) {
    release_pods(transport_, transport_, options_, stop);
  }
  std::string failure() {
    try {
      run();
    } catch (const Unavailable& error) {
      return error.what();
    }
    return "none";
  }
  Json finalizers(const std::string& name) {
    return member(server_.object("pods", name)["metadata"], "finalizers");
  }
  void hold_lease(const std::string& holder) {
    server_.put({{"kind", "Lease"},
                 {"metadata", {{"name", "muster-operator"}, {"namespace", "system"}}},
                 {"spec", {{"holderIdentity", holder}, {"leaseDurationSeconds", 60}}}});
  }

  FakeApiServer server_;
  std::mutex mutex_;
  FakeTransport transport_{[this](const Request& request) {
    const std::lock_guard lock(mutex_);
    return server_.send(request);
  }};
  ReleaseOptions options_;
};

TEST_F(ReleaseTest, TakesOurFinalizerOffEveryPodAndNoOther) {
  for (int i = 0; i < 450; ++i) {
    server_.put(pod("pod-" + std::to_string(i), {kube::kTrackingFinalizer}));
  }
  server_.put(pod("ended", Json::array()));
  server_.put(pod("shared", {"example.com/keep", kube::kTrackingFinalizer}));
  Json foreign = pod("foreign", {kube::kTrackingFinalizer});
  foreign["metadata"].erase("labels");
  server_.put(foreign);
  run();
  for (int i = 0; i < 450; ++i) EXPECT_TRUE(finalizers("pod-" + std::to_string(i)).empty());
  EXPECT_EQ(finalizers("shared"), Json::array({"example.com/keep"}));
  EXPECT_EQ(finalizers("foreign"), Json::array({kube::kTrackingFinalizer}));
  EXPECT_EQ(server_.count("PATCH pods"), 451);
  EXPECT_EQ(server_.count("GET pods"), 3 + 3) << "in pages, and a look whether there are more";
}

TEST_F(ReleaseTest, ScalesTheOperatorsDownFirst) {
  server_.put(pod("a", {kube::kTrackingFinalizer}));
  run();
  EXPECT_EQ(server_.object("deployments", "muster")["spec"]["replicas"], 0);
  EXPECT_EQ(server_.calls().front(), "PATCH deployments/scale");
  EXPECT_FALSE(server_.has("leases", "muster-operator")) << "nobody needs it any more";
}

TEST_F(ReleaseTest, LeavesTheLeaseOfOperatorsThatItHasNotEnded) {
  options_.deployment = {};
  run();
  EXPECT_EQ(server_.object("leases", "muster-operator")["spec"]["holderIdentity"], "")
      << "it is given up";
}

TEST_F(ReleaseTest, LeavesALeaseThatItMayNotDelete) {
  server_.put(pod("a", {kube::kTrackingFinalizer}));
  server_.intercept = [&](const Request& request) -> std::optional<Response> {
    if (request.method != Method::remove) return std::nullopt;
    return kube::answer(403, R"({"kind": "Status", "code": 403, "reason": "Forbidden"})");
  };
  EXPECT_EQ(failure(), "none");
  EXPECT_TRUE(finalizers("a").empty());
  EXPECT_TRUE(server_.has("leases", "muster-operator"));
}

TEST_F(ReleaseTest, GoesOnWhereTheDeploymentHasGone) {
  options_.deployment.name = "gone";
  server_.put(pod("a", {kube::kTrackingFinalizer}));
  run();
  EXPECT_TRUE(finalizers("a").empty());
}

TEST_F(ReleaseTest, WaitsForTheLeaseOfTheLeader) {
  hold_lease("leader");
  server_.put(pod("a", {kube::kTrackingFinalizer}));
  int looks = 0;
  server_.intercept = [&](const Request& request) -> std::optional<Response> {
    EXPECT_FALSE(looks < 5 && request.path.find("/pods") != std::string::npos) << request.path;
    if (request.path.find("/leases") != std::string::npos && ++looks == 5) hold_lease("");
    return std::nullopt;
  };
  run();
  EXPECT_TRUE(finalizers("a").empty());
}

TEST_F(ReleaseTest, TouchesNoPodWhileAnotherLeads) {
  hold_lease("leader_1");
  server_.put(pod("a", {kube::kTrackingFinalizer}));
  options_.timeout = 200ms;
  EXPECT_THAT(failure(), HasSubstr("system/muster-operator"));
  EXPECT_THAT(failure(), HasSubstr("leader_1 holds it"));
  EXPECT_FALSE(finalizers("a").empty());
}

TEST_F(ReleaseTest, WaitsForTheEndOfOperatorsWithoutALease) {
  options_.elects_leader = false;
  server_.put(pod("a", {kube::kTrackingFinalizer}));
  Json leaving = operator_pod();
  leaving["metadata"]["labels"] = {{kube::kJobLabel, "so that the fake server lists it"}};
  server_.put(leaving);
  int looks = 0;
  server_.intercept = [&](const Request& request) -> std::optional<Response> {
    const bool looks_for_operators = kube::query(request, "labelSelector") == "app=muster";
    if (looks_for_operators && ++looks == 3) server_.remove("pods", "muster-0");
    EXPECT_FALSE(looks < 3 && request.path.find("/lab/pods") != std::string::npos);
    if (!looks_for_operators || looks < 3) return std::nullopt;
    return kube::answer(200, R"({"items": []})");
  };
  run();
  EXPECT_EQ(looks, 3);
  EXPECT_TRUE(finalizers("a").empty());
  EXPECT_THAT(server_.calls(), Not(Contains(HasSubstr("leases"))));
}

TEST_F(ReleaseTest, TriesAgainWhatFailsAndSaysWhatIsLeft) {
  server_.put(pod("a", {kube::kTrackingFinalizer}));
  server_.put(pod("b", {kube::kTrackingFinalizer}));
  int failures = 3;
  server_.intercept = [&](const Request& request) -> std::optional<Response> {
    const bool hit = request.method == Method::patch && request.path.ends_with("/a");
    if (!hit || failures-- <= 0) return std::nullopt;
    return kube::refusal(500, "InternalError", "etcd is away");
  };
  run();
  EXPECT_TRUE(finalizers("a").empty() && finalizers("b").empty());

  server_.put(pod("a", {kube::kTrackingFinalizer}));
  server_.put(pod("b", {kube::kTrackingFinalizer}));
  failures = 1'000'000;
  options_.timeout = 200ms;
  EXPECT_THAT(failure(), AllOf(HasSubstr("/pods/a"), HasSubstr("etcd is away")));
  EXPECT_TRUE(finalizers("b").empty()) << "one pod's trouble is no other's";
}

TEST_F(ReleaseTest, APodThatGoesMeanwhileNeedsNothing) {
  server_.put(pod("a", {kube::kTrackingFinalizer}));
  server_.put(pod("b", {kube::kTrackingFinalizer}));
  bool first = true;
  server_.intercept = [&](const Request& request) -> std::optional<Response> {
    if (request.method != Method::patch || !request.path.ends_with("/a") || !first) {
      return std::nullopt;
    }
    first = false;
    return kube::refusal(404, "NotFound", "pods a not found");
  };
  run();
  EXPECT_TRUE(finalizers("b").empty());
}

TEST_F(ReleaseTest, OnlyOfTheNamespacesItIsGiven) {
  options_.namespaces = {"lab", "team"};
  run();
  std::vector<std::string> paths;
  for (const Request& request : transport_.requests())
    if (request.path.ends_with("/pods")) paths.push_back(request.path);
  EXPECT_THAT(paths, ElementsAre("/api/v1/namespaces/lab/pods", "/api/v1/namespaces/team/pods"));
}

TEST_F(ReleaseTest, EndsWhenItIsStopped) {
  hold_lease("leader");
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(run(stop.get_token()), Unavailable);
}

}  // namespace
}  // namespace muster::cmd
