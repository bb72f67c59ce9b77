#include "operator/kube/cluster/kube_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>

#include "common/json.h"
#include "common/termination_message.h"
#include "operator/kube/pods/names.h"
#include "tests/unit/operator/kube/cluster/kube_world.h"
#include "tests/unit/operator/kube/fake_transport.h"

namespace muster::kube {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

Response refusal(int code, const std::string& reason, const std::string& message) {
  Response response;
  response.status = code;
  response.body =
      Json{{"kind", "Status"}, {"code", code}, {"reason", reason}, {"message", message}}.dump();
  return response;
}

bool is_tracked(const Json& pod) {
  return !member(pod["metadata"], "finalizers").empty();
}

Json training() {
  return Json::parse(R"({
      "training": {"model": {"name": "mnist-mlp"}, "epochs": 1, "data": {
          "train": {"syntheticClasses": {"samples": 60, "classes": 10, "shape": [784]}},
          "test": {"syntheticClasses": {"samples": 60, "classes": 10, "shape": [784]}}}},
      "storage": {"volume": {"emptyDir": {}}}})");
}

class KubeClusterTest : public testing::Test {
 protected:
  void start() {
    world_.submit();
    world_.settle();
    world_.run_all();
    world_.run_for(5s);
  }
  // The next request of this kind is refused in this way, `times` times.
  void refuse(Method method, const std::string& part, const Response& response, int times = 1) {
    world_.server.intercept = [=, left = times](const Request& request) mutable {
      const bool hit =
          left > 0 && request.method == method && request.path.find(part) != std::string::npos;
      if (hit) --left;
      return hit ? std::optional(response) : std::nullopt;
    };
  }
  // Every request of this kind is refused in this way, until server().intercept is taken away.
  void refuse_all(Method method, const std::string& part, const Response& response) {
    refuse(method, part, response, std::numeric_limits<int>::max());
  }
  void change_spec(const Json& change) {
    Json job = world_.job();
    job["spec"].merge_patch(change);
    job["metadata"]["generation"] = integer_or(job["metadata"], "generation", 1) + 1;
    server().put(job);
    world_.settle();
  }
  std::string message(const std::string& type) {
    const Json job = world_.job();
    for (const Json& condition : job["status"]["conditions"]) {
      if (condition["type"] == type) return condition["message"];
    }
    return "";
  }
  // As kubectl scale does.
  void scale(int workers) {
    change_spec({{"replicaSpecs", {{"worker", {{"replicas", workers}}}}}});
  }
  FakeApiServer& server() { return world_.server; }

  KubeWorld world_;
};

TEST_F(KubeClusterTest, StartsAJobWithinItsBudgetOfCalls) {
  start();
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 ps-0.0 worker-0.0");
  EXPECT_EQ(world_.condition("Running"), "True AllReplicasReady");
  EXPECT_THAT(server().calls(),
              ElementsAre("POST pods dry", "PUT trainingjobs/status", "POST services", "POST pods",
                          "POST pods", "POST pods", "POST pods", "PUT trainingjobs/status"));
  EXPECT_EQ(world_.job()["status"]["labelSelector"], "muster.dev/job=mnist,muster.dev/role=worker");
}

TEST_F(KubeClusterTest, IsNotWokenByItsOwnWrites) {
  world_.submit();
  world_.settle();
  EXPECT_EQ(world_.wakes, 1) << "for the job that is new";
}

TEST_F(KubeClusterTest, CreatesNothingTwiceWhileTheViewLags) {
  world_.tells_of_pods = false;
  world_.submit();
  world_.settle();
  EXPECT_EQ(server().count("POST pods"), 4);
  Json job = world_.job();
  job["metadata"]["generation"] = 2;
  server().put(job);
  world_.settle();
  EXPECT_EQ(server().count("POST pods"), 4);
}

TEST_F(KubeClusterTest, LetsPodsGoOnceTheyAreCounted) {
  start();
  server().end_pod(world_.pod("worker-0"), 0);
  EXPECT_TRUE(is_tracked(server().object("pods", world_.pod("worker-0"))));
  world_.settle();
  EXPECT_FALSE(is_tracked(server().object("pods", world_.pod("worker-0"))));
  EXPECT_TRUE(is_tracked(server().object("pods", world_.pod("chief-0"))));
}

TEST_F(KubeClusterTest, TracksAPodForAsLongAsItsEndCannotBeCounted) {
  start();
  server().end_pod(world_.pod("worker-0"), 0);
  refuse(Method::put, "/status", refusal(500, "InternalError", "etcd is away"), 1);
  world_.settle();
  EXPECT_TRUE(is_tracked(server().object("pods", world_.pod("worker-0"))));
  world_.run_for(1s);
  EXPECT_FALSE(is_tracked(server().object("pods", world_.pod("worker-0"))));
}

TEST_F(KubeClusterTest, TellsAndDoesWhatIsWrittenThoughAPodCannotBeLetGo) {
  start();
  world_.events.clear();
  const std::string pod = world_.pod("worker-0");
  server().end_pod(pod, 0);
  server().end_pod(world_.pod("chief-0"), 0);
  refuse(Method::patch, "/pods/", refusal(500, "InternalError", "etcd is away"), 1);
  world_.settle();
  EXPECT_THAT(world_.events, Contains("mnist: ChiefSucceeded"));
  EXPECT_FALSE(is_tracked(server().object("pods", pod))) << "the pass after it lets go";
  EXPECT_THAT(world_.troubles, IsEmpty());
}

TEST_F(KubeClusterTest, BringsAJobToItsEnd) {
  start();
  server().end_pod(world_.pod("chief-0"), 0);
  world_.settle();
  EXPECT_EQ(world_.condition("SuccessCriteriaMet"), "True ChiefSucceeded");
  server().end_pod(world_.pod("evaluator-0"), 0);
  for (int i = 0; i < 4; ++i) {
    world_.settle();
    server().end_leaving_pods();
  }
  world_.settle();
  EXPECT_EQ(world_.condition("Succeeded"), "True ChiefSucceeded");
  EXPECT_EQ(world_.condition("Finished"), "True ChiefSucceeded");
  for (const Json& pod : server().objects("pods")) EXPECT_FALSE(is_tracked(pod));
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0") << "those that ended by themselves stay";
}

TEST_F(KubeClusterTest, TheStatusOfASuccessHasWhereTrainingEnded) {
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

TEST_F(KubeClusterTest, TheStatusOfASuccessHasWhatTheTrainingHasComeTo) {
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
TEST_F(KubeClusterTest, AsksNoJobWithoutTrainingForItsProgress) {
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

TEST_F(KubeClusterTest, AJobTakesItsFirstStepOnce) {
  std::string answer;
  std::atomic<bool> asked;
  world_.ask_progress = [&](const std::string&) {
    asked = true;
    asked.notify_all();
    return answer;
  };
  const auto answers = [&](const std::string& progress) {
    answer = progress;
    asked = false;
    world_.settle();
    std::jthread poller([&](const std::stop_token& stop) { world_.cluster().poll_progress(stop); });
    asked.wait(false);
    poller.request_stop();
    poller.join();
    world_.run_for(2s);
  };
  world_.restart_operator();
  world_.submit("mnist", training());
  world_.settle();
  world_.run_all();
  answers(R"({"step": 4, "stepsHere": 0, "totalSteps": 9})");
  EXPECT_EQ(world_.job()["status"]["progress"]["step"], 4) << "it goes on from another's";
  EXPECT_THAT(world_.events, Not(Contains("mnist: FirstStep")));
  EXPECT_EQ(world_.first_step, "");
  answers(R"({"step": 5, "stepsHere": 1, "totalSteps": 9})");
  EXPECT_THAT(world_.events, Contains("mnist: FirstStep").Times(1));
  EXPECT_NE(world_.first_step, "");
  server().end_pod(world_.pod("chief-0"), 1);
  world_.run_for(2s);
  world_.run_all();
  answers(R"({"step": 3, "stepsHere": 0, "totalSteps": 9})");
  EXPECT_EQ(world_.job()["status"]["progress"]["step"], 5);
  world_.restart_operator();
  answers(R"({"step": 4, "stepsHere": 1, "totalSteps": 9})");
  EXPECT_EQ(world_.job()["status"]["progress"]["step"], 4);
  EXPECT_THAT(world_.events, Contains("mnist: FirstStep").Times(1));
}

TEST_F(KubeClusterTest, AJobThatHadNothingToTrainTakesNoFirstStep) {
  start();
  Json status = Json::parse(R"({"phase": "Succeeded", "containerStatuses": [
      {"name": "tensorflow", "state": {"terminated": {"exitCode": 0}}}]})");
  status["containerStatuses"][0]["state"]["terminated"]["message"] =
      TerminationMessage{0, "done", {{"step", 10}, {"totalSteps", 10}}}.text();
  server().set_status(world_.pod("chief-0"), status);
  world_.settle();
  EXPECT_EQ(world_.job()["status"]["progress"]["step"], 10);
  EXPECT_THAT(world_.events, Contains("mnist: ChiefSucceeded"));
  EXPECT_THAT(world_.events, Not(Contains("mnist: FirstStep")));
}

TEST_F(KubeClusterTest, TellsTheStoryOfAJobInEvents) {
  start();
  EXPECT_THAT(world_.events, ElementsAre("mnist: Started", "mnist: Running"));
  const std::string last_words =
      TerminationMessage{0, "done", {{"step", 10}, {"stepsHere", 10}, {"totalSteps", 10}}}.text();
  Json status = Json::parse(R"({"phase": "Succeeded", "containerStatuses": [
      {"name": "tensorflow", "state": {"terminated": {"exitCode": 0}}}]})");
  status["containerStatuses"][0]["state"]["terminated"]["message"] = last_words;
  server().set_status(world_.pod("chief-0"), status);
  world_.settle();
  server().end_pod(world_.pod("evaluator-0"), 0);
  for (int i = 0; i < 4; ++i) {
    world_.settle();
    server().end_leaving_pods();
  }
  world_.settle();
  EXPECT_THAT(world_.events, ElementsAre("mnist: Started", "mnist: Running", "mnist: FirstStep",
                                         "mnist: ChiefSucceeded", "mnist: Succeeded"));
}

TEST_F(KubeClusterTest, ReplacesAFailedReplicaAndCountsIt) {
  start();
  server().end_pod(world_.pod("worker-0"), 1);
  world_.run_for(2s);
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 ps-0.0 worker-0.1");
  EXPECT_EQ(world_.job()["status"]["restarts"], 1);
  EXPECT_EQ(world_.restarts, "worker ReplicaFailed 1; ");
  EXPECT_THAT(world_.events, Contains("mnist: ReplicaFailed"));
}

TEST_F(KubeClusterTest, DoesNothingWhereTheStatusConflicts) {
  refuse(Method::put, "/status", refusal(409, "Conflict", "modified"), 1);
  world_.submit();
  world_.settle();
  EXPECT_EQ(server().count("POST pods"), 0);
  ASSERT_EQ(world_.troubles.size(), 1u);
  EXPECT_FALSE(world_.troubles[0].invalid);
  world_.run_for(1s);
  EXPECT_EQ(server().count("POST pods"), 4);
}

TEST_F(KubeClusterTest, WritesNothingUnlessItLeads) {
  world_.leads = false;
  world_.submit();
  world_.run_for(5s);
  for (const std::string& call : server().calls()) EXPECT_THAT(call, StartsWith("GET"));
}

TEST_F(KubeClusterTest, TakesAPodThatIsThereAlreadyForItsOwn) {
  int lost = 1;
  server().loses_answer = [&](const Request& request) {
    return request.method == Method::post && request.path.ends_with("/pods") &&
           query(request, "dryRun").empty() && lost-- > 0;
  };
  world_.submit();
  world_.run_for(2s);
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 ps-0.0 worker-0.0");
  EXPECT_EQ(world_.condition("Accepted"), "True Valid");
}

TEST_F(KubeClusterTest, NeverAdoptsAForeignPod) {
  world_.submit();
  world_.settle();
  const std::string name = world_.pod("worker-0");
  KubeWorld other;
  other.server.put({{"kind", "Pod"},
                    {"metadata", {{"name", name}, {"namespace", "lab"}, {"uid", "foreign"}}},
                    {"spec", {{"hostname", "x"}}},
                    {"status", {{"phase", "Running"}}}});
  other.server.put(world_.job());  // of the same UID, so that the name is the same
  Json job = other.job();
  job.erase("status");
  other.server.put(job);
  other.restart_operator();
  other.run_for(5s);
  EXPECT_EQ(other.condition("Accepted"), "False NameConflict");
  EXPECT_FALSE(other.server.object("pods", name)["metadata"].contains("labels"));
  other.server.remove("pods", name);
  other.run_for(20s);
  EXPECT_EQ(other.condition("Accepted"), "True Valid");
  EXPECT_EQ(other.pods(), "chief-0.0 evaluator-0.0 ps-0.0 worker-0.0");
}

TEST_F(KubeClusterTest, NeverAdoptsAForeignService) {
  server().put({{"kind", "Service"}, {"metadata", {{"name", "mnist"}, {"namespace", "lab"}}}});
  world_.submit();
  world_.run_for(5s);
  EXPECT_EQ(world_.condition("Accepted"), "False NameConflict");
  EXPECT_EQ(server().count("POST pods"), 0);
}

TEST_F(KubeClusterTest, MakesADeletedServiceAnew) {
  start();
  server().remove("services", "mnist");
  world_.settle();
  EXPECT_TRUE(server().has("services", "mnist"));
}

TEST_F(KubeClusterTest, MakesAServiceAnewThatGoesWhileItIsMade) {
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

TEST_F(KubeClusterTest, RemovesOnlyThePodThatItLookedAt) {
  start();
  world_.tells_of_pods = false;
  server().set_status(world_.pod("worker-0"), {{"message", "changed meanwhile"}});
  server().put([&] {
    Json job = world_.job();
    job["spec"]["suspend"] = true;
    job["metadata"]["generation"] = 2;
    return job;
  }());
  world_.settle();
  EXPECT_FALSE(
      server().object("pods", world_.pod("worker-0"))["metadata"].contains("deletionTimestamp"));
  EXPECT_EQ(world_.troubles.size(), 1u);
  world_.run_for(1s);
  EXPECT_TRUE(
      server().object("pods", world_.pod("worker-0"))["metadata"].contains("deletionTimestamp"))
      << "it has been looked at anew, though the view lags";
}

TEST_F(KubeClusterTest, APodWhoseNameIsAnothersNowHasGone) {
  start();
  world_.tells_of_pods = false;
  const std::string name = world_.pod("worker-0");
  Json other = server().object("pods", name);
  other["metadata"]["uid"] = "another";
  server().put(other);
  Json job = world_.job();
  job["spec"]["suspend"] = true;
  job["metadata"]["generation"] = 2;
  server().put(job);
  world_.run_for(2s);
  EXPECT_THAT(world_.troubles, IsEmpty());
  EXPECT_GE(server().count("DELETE pods"), 3) << "chief, worker and evaluator are asked to leave";
  EXPECT_FALSE(server().object("pods", name)["metadata"].contains("deletionTimestamp"));
  EXPECT_TRUE(is_tracked(server().object("pods", name)));
}

TEST_F(KubeClusterTest, SuspendsAndResumes) {
  start();
  Json job = world_.job();
  job["spec"]["suspend"] = true;
  job["metadata"]["generation"] = 2;
  server().put(job);
  for (int i = 0; i < 3; ++i) {
    world_.settle();
    server().end_leaving_pods();
  }
  world_.settle();
  EXPECT_EQ(world_.condition("Suspended"), "True Suspended");
  EXPECT_EQ(world_.pods(), "");
  job = world_.job();
  job["spec"]["suspend"] = false;
  job["metadata"]["generation"] = 3;
  server().put(job);
  world_.run_for(2s);
  EXPECT_EQ(world_.pods(), "chief-0.1 evaluator-0.1 ps-0.1 worker-0.1");
  EXPECT_EQ(world_.job()["status"]["restarts"], 0);
}

TEST_F(KubeClusterTest, APodOnALostNodeDoesNotBlockItsSuccessor) {
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

TEST_F(KubeClusterTest, APodOnANodeThatLivesIsWaitedFor) {
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

TEST_F(KubeClusterTest, LooksAgainWhetherTheNodeOfAPodThatLeavesHasBeenLost) {
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

TEST_F(KubeClusterTest, LetsGoWhatADeletedJobLeaves) {
  start();
  server().remove("trainingjobs", "mnist");
  world_.settle();
  server().end_leaving_pods();
  world_.settle();
  EXPECT_THAT(server().objects("pods"), IsEmpty());
}

TEST_F(KubeClusterTest, LetsGoWhatAJobThatIsBeingDeletedHas) {
  start();
  Json job = world_.job();
  job["metadata"]["finalizers"] = {"foregroundDeletion"};
  server().put(job);
  server().remove("trainingjobs", "mnist");
  world_.settle();
  for (const Json& pod : server().objects("pods")) EXPECT_FALSE(is_tracked(pod));
}

TEST_F(KubeClusterTest, AJobThatIsDeletedAndComesAgainAtOnceStartsAnew) {
  start();
  server().remove("trainingjobs", "mnist");
  world_.submit();
  world_.run_for(2s);
  server().end_leaving_pods();
  world_.run_for(2s);
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 ps-0.0 worker-0.0");
  const std::string uid = world_.job()["metadata"]["uid"];
  for (const Json& pod : server().objects("pods")) {
    EXPECT_EQ(pod["metadata"]["ownerReferences"][0]["uid"], uid);
  }
}

TEST_F(KubeClusterTest, AJobThatGoesWhileAPassIsUnderWayIsForgotten) {
  start();
  EXPECT_EQ(world_.cluster().jobs_by_state().at("Running"), 1);
  server().end_pod(world_.pod("worker-0"), 1);
  server().loses_answer = [&](const Request& request) {
    if (request.method == Method::put) {
      server().loses_answer = nullptr;
      server().remove("trainingjobs", "mnist");
      server().tell(world_.cluster().jobs(), "trainingjobs");
    }
    return false;
  };
  world_.run_for(2s);
  for (const auto& [state, jobs] : world_.cluster().jobs_by_state()) EXPECT_EQ(jobs, 0) << state;
}

TEST_F(KubeClusterTest, AViewWithoutTheJobIsNoReasonToLetItsPodsGo) {
  start();
  world_.cluster().jobs().begin_list();
  world_.cluster().jobs().add_page(R"({"metadata": {"resourceVersion": "1"}, "items": []})");
  world_.cluster().jobs().end_list();
  EXPECT_EQ(world_.cluster().get("lab/mnist"), std::nullopt);
  for (const Json& pod : server().objects("pods")) EXPECT_TRUE(is_tracked(pod));
}

TEST_F(KubeClusterTest, NothingRunsAgainWhosePodsWereCollectedWhileItWasAway) {
  start();
  server().end_pod(world_.pod("worker-0"), 0);
  server().end_pod(world_.pod("chief-0"), 0);
  server().remove("pods", world_.pod("worker-0"));
  server().remove("pods", world_.pod("chief-0"));
  world_.restart_operator();
  world_.run_for(2s);
  EXPECT_EQ(world_.condition("SuccessCriteriaMet"), "True ChiefSucceeded");
  EXPECT_EQ(server().count("POST pods"), 4);
}

TEST_F(KubeClusterTest, AdoptsWhatRunsWithoutTouchingIt) {
  start();
  server().forget_calls();
  world_.restart_operator();
  world_.run_for(10s);
  EXPECT_THAT(server().calls(), IsEmpty());
}

TEST_F(KubeClusterTest, StopsWhatGoesOnBesideAReplicaThatHasEnded) {
  start();
  const std::string pod = world_.pod("worker-0");
  server().set_status(pod, Json::parse(R"({"phase": "Running", "containerStatuses": [
             {"name": "log", "state": {"running": {}}},
             {"name": "tensorflow", "state": {"terminated": {"exitCode": 0}}}]})"));
  world_.settle();
  EXPECT_TRUE(server().object("pods", pod)["metadata"].contains("deletionTimestamp"));
  EXPECT_EQ(world_.job()["status"]["replicaStatuses"]["worker"]["succeeded"], 1);
}

struct Refusal {
  const char* name;
  Response response;
  const char* accepted;
  bool tries;
};

TEST_F(KubeClusterTest, ADryRunSaysWhetherPodsCanBeCreated) {
  const Refusal refusals[] = {
      {"invalid", refusal(422, "Invalid", "spec.containers[0].image: Required value"),
       "False InvalidTemplate", false},
      {"misspelt", refusal(400, "BadRequest", "strict decoding error: unknown field"),
       "False InvalidTemplate", false},
      {"pod security", refusal(403, "Forbidden", "pods is forbidden: violates PodSecurity \"x\""),
       "False InvalidTemplate", false},
      {"quota", refusal(403, "Forbidden", "pods is forbidden: exceeded quota: q"), "True Valid",
       true},
      {"a webhook without dry run",
       refusal(400, "BadRequest", "admission webhook \"w\" does not support dry run"),
       "Unknown Unknown", true},
      {"server trouble", refusal(500, "InternalError", "etcd"), "Unknown Unknown", true},
  };
  for (const Refusal& test : refusals) {
    KubeWorld world;
    world.server.intercept = [&](const Request& request) {
      const bool dry = request.method == Method::post && !query(request, "dryRun").empty();
      return dry ? std::optional(test.response) : std::nullopt;
    };
    world.submit();
    world.settle();
    EXPECT_EQ(world.condition("Accepted"), test.accepted) << test.name;
    EXPECT_EQ(world.server.count("POST pods") > 0, test.tries) << test.name;
    world.server.intercept = nullptr;
    world.run_for(40s);
    EXPECT_EQ(world.condition("Accepted"), "True Valid") << test.name << ": asked again";
    EXPECT_EQ(world.server.count("POST pods"), 4) << test.name;
  }
}

TEST_F(KubeClusterTest, OneDryRunDoesForAllOfOneTemplate) {
  for (int i = 0; i < 20; ++i) world_.submit("job-" + std::to_string(i));
  world_.run_for(5s);
  EXPECT_EQ(server().count("POST pods dry"), 1);
  EXPECT_EQ(server().count("POST pods"), 80);
}

bool creates_pod(const Request& request) {
  return request.method == Method::post && request.path.ends_with("/pods") &&
         query(request, "dryRun").empty();
}

TEST(KubeClusterWrites, CreatesPodsSeveralAtATimeAndEachOnce) {
  KubeWorld world(4);
  std::mutex mutex;
  std::condition_variable changed;
  int begun = 0;
  // The first goes alone, and the next two wait for each other.
  world.server.intercept = [&](const Request& request) -> std::optional<Response> {
    if (!creates_pod(request)) return std::nullopt;
    std::unique_lock lock(mutex);
    ++begun;
    changed.notify_all();
    const bool met = changed.wait_for(lock, 60s, [&] { return begun == 1 || begun >= 3; });
    EXPECT_TRUE(met) << "one after the other";
    return std::nullopt;
  };
  world.submit("mnist", {{"replicaSpecs", {{"worker", {{"replicas", 40}}}}}});
  world.settle();
  EXPECT_EQ(world.server.objects("pods").size(), 43U);
  EXPECT_EQ(world.server.count("POST pods"), 43);
  world.run_all();
  world.run_for(5s);
  EXPECT_EQ(world.condition("Running"), "True AllReplicasReady");
  EXPECT_EQ(world.server.count("POST pods"), 43);
  world.server.end_pod(world.pod("chief-0"), 0);
  world.server.end_pod(world.pod("evaluator-0"), 0);
  for (int i = 0; i < 3; ++i) {
    world.run_for(2s);
    world.server.end_leaving_pods();
  }
  world.run_for(2s);
  EXPECT_EQ(world.condition("Finished"), "True ChiefSucceeded");
  for (const Json& pod : world.server.objects("pods")) {
    EXPECT_FALSE(is_tracked(pod)) << pod["metadata"]["name"];
  }
}

TEST_F(KubeClusterTest, CreatesNoMoreForAJobThatIsDeletedMeanwhile) {
  for (const bool goes_at_once : {true, false}) {
    world_.submit();
    if (!goes_at_once) {
      Json job = world_.job();
      job["metadata"]["finalizers"] = {"foregroundDeletion"};
      server().put(job);
    }
    server().forget_calls();
    server().loses_answer = [&](const Request& request) {
      if (creates_pod(request) && server().count("POST pods") == 2) {
        server().remove("trainingjobs", "mnist");
        server().tell(world_.cluster().jobs(), "trainingjobs");
      }
      return false;
    };
    world_.settle();
    EXPECT_EQ(server().count("POST pods"), 2);
    for (const Json& pod : server().objects("pods")) EXPECT_FALSE(is_tracked(pod));
  }
}

// Its creation is an own write, and the job is deleted while that is under way.
TEST_F(KubeClusterTest, LetsGoAPodThatShowsWhenNothingElseWakesItsJob) {
  world_.submit();
  world_.tells_of_pods = false;
  server().intercept = [&](const Request& request) -> std::optional<Response> {
    if (creates_pod(request)) {
      server().intercept = nullptr;
      server().remove("trainingjobs", "mnist");
      server().tell(world_.cluster().jobs(), "trainingjobs");
    }
    return std::nullopt;
  };
  world_.settle();
  ASSERT_EQ(server().objects("pods").size(), 1U);
  EXPECT_TRUE(is_tracked(server().objects("pods")[0]));
  world_.tells_of_pods = true;
  world_.settle();
  EXPECT_FALSE(is_tracked(server().objects("pods")[0]));
}

TEST_F(KubeClusterTest, LetsGoAPodThatShowsWhileTheOthersAreLetGo) {
  world_.submit();
  world_.tells_of_pods = false;
  server().intercept = [&](const Request& request) -> std::optional<Response> {
    if (creates_pod(request) && server().count("POST pods") == 2) {
      server().tell(world_.cluster().pods(), "pods");
      server().remove("trainingjobs", "mnist");
      server().tell(world_.cluster().jobs(), "trainingjobs");
    }
    if (request.method == Method::patch && world_.cluster().pods().size() == 1) {
      server().tell(world_.cluster().pods(), "pods");
    }
    return std::nullopt;
  };
  world_.settle();
  EXPECT_EQ(server().count("POST pods"), 2);
  for (const Json& pod : server().objects("pods")) EXPECT_FALSE(is_tracked(pod));
}

TEST(KubeClusterWrites, AQuotaForSomeOfManyIsAskedSeldomAndUsedWhole) {
  KubeWorld world(8);
  std::atomic<int> quota = 10;
  world.server.intercept = [&](const Request& request) -> std::optional<Response> {
    if (!creates_pod(request) || quota-- > 0) return std::nullopt;
    return refusal(403, "Forbidden", "exceeded quota: pods");
  };
  world.submit("mnist", {{"replicaSpecs", {{"worker", {{"replicas", 40}}}}}});
  world.settle();
  EXPECT_EQ(world.server.objects("pods").size(), 10U);
  EXPECT_EQ(world.server.count("POST pods"), 15) << "1, 2, 4 and 8";
  world.run_for(10s);
  EXPECT_EQ(world.condition("Running"), "False QuotaExceeded");
  EXPECT_EQ(world.server.objects("pods").size(), 10U);
  quota = 1000;
  world.run_for(60s);
  EXPECT_EQ(world.condition("Accepted"), "True Valid");
  EXPECT_EQ(world.server.objects("pods").size(), 43U);
}

TEST_F(KubeClusterTest, AQuotaThatIsUsedUpIsToldAndWaitedFor) {
  server().intercept = [](const Request& request) {
    const bool pod = request.method == Method::post && request.path.ends_with("/pods");
    const std::string words =
        R"(pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2)";
    return pod ? std::optional(refusal(403, "Forbidden", words)) : std::nullopt;
  };
  world_.submit();
  world_.run_for(60s);
  EXPECT_EQ(world_.condition("Accepted"), "True Valid");
  EXPECT_EQ(world_.condition("Running"), "False QuotaExceeded");
  EXPECT_EQ(world_.job()["status"]["cause"],
            "quota q holds the job up: requested: pods=1, used: pods=2, limited: pods=2");
  EXPECT_EQ(std::ranges::count(world_.events, "mnist: QuotaExceeded"), 1);
  EXPECT_LT(server().count("PUT trainingjobs/status"), 5);
  server().intercept = nullptr;
  world_.run_for(60s);
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 ps-0.0 worker-0.0");
  EXPECT_EQ(world_.condition("Accepted"), "True Valid");
}

TEST_F(KubeClusterTest, AServiceThatIsRefusedIsToldAndWaitedFor) {
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

TEST_F(KubeClusterTest, AServiceThatIsRefusedBesideLivePodsIsToldToo) {
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

TEST_F(KubeClusterTest, ARefusalThatQuotesWithoutEndIsCut) {
  refuse_all(Method::post, "/pods", refusal(422, "Invalid", std::string(40'000, 'x')));
  world_.submit();
  world_.settle();
  EXPECT_EQ(world_.condition("Accepted"), "False InvalidTemplate");
  EXPECT_EQ(message("Accepted").size(), 4096u);
  EXPECT_THAT(world_.events, Contains("mnist: InvalidTemplate"));
}

TEST_F(KubeClusterTest, WhatIsRefusedOnceByWhoeverStandsBetweenIsTriedAgain) {
  refuse(Method::put, "/status", refusal(400, "BadRequest", "the proxy has hiccups"), 1);
  world_.submit();
  world_.settle();
  EXPECT_EQ(server().count("POST pods"), 0);
  world_.run_for(30s);
  EXPECT_EQ(server().count("POST pods"), 4);
}

TEST_F(KubeClusterTest, WhatValidationRefusesIsNotRun) {
  world_.submit("mnist", Json::parse(R"({"replicaSpecs": {"worker": {"template": {"spec":
    {"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "x"}]}}}}})"));
  world_.settle();
  EXPECT_EQ(world_.condition("Accepted"), "False InvalidTemplate");
  EXPECT_EQ(server().count("POST pods dry"), 0);
}

TEST_F(KubeClusterTest, RemovesAFinishedJobWhenItsTimeHasCome) {
  world_.submit("mnist", {{"runPolicy", {{"ttlSecondsAfterFinished", 60}}}});
  world_.settle();
  world_.run_all();
  server().end_pod(world_.pod("chief-0"), 0);
  server().end_pod(world_.pod("evaluator-0"), 0);
  for (int i = 0; i < 4; ++i) {
    world_.settle();
    server().end_leaving_pods();
  }
  world_.run_for(30s);
  EXPECT_TRUE(server().has("trainingjobs", "mnist"));
  world_.run_for(31s);
  EXPECT_FALSE(server().has("trainingjobs", "mnist"));
}

TEST_F(KubeClusterTest, RemovesNoJobThatHasTakenTheNameOfTheFinishedOne) {
  world_.submit("mnist", {{"runPolicy", {{"ttlSecondsAfterFinished", 0}}}});
  world_.settle();
  world_.run_all();
  server().end_pod(world_.pod("chief-0"), 0);
  server().end_pod(world_.pod("evaluator-0"), 0);
  server().intercept = [&](const Request& request) {
    if (request.method == Method::remove &&
        request.path.find("/trainingjobs/") != std::string::npos) {
      Json other = world_.job();
      other["metadata"]["uid"] = "another";
      other.erase("status");
      server().put(other);
    }
    return std::optional<Response>();
  };
  for (int i = 0; i < 4; ++i) {
    world_.settle();
    server().end_leaving_pods();
  }
  world_.run_for(5s);
  EXPECT_GE(server().count("DELETE trainingjobs"), 1);
  EXPECT_EQ(world_.job()["metadata"]["uid"], "another");
  EXPECT_FALSE(world_.job()["metadata"].contains("deletionTimestamp"));
}

TEST_F(KubeClusterTest, LeavesTheJobsOfOthersAlone) {
  world_.submit("mnist", {{"managedBy", "kueue.x-k8s.io/multikueue"}});
  world_.settle();
  EXPECT_THAT(server().calls(), IsEmpty());
  EXPECT_THAT(world_.cluster().jobs_by_state(), IsEmpty());
}

TEST_F(KubeClusterTest, CreatesTheGroupOfAGang) {
  world_.submit("mnist", {{"schedulingPolicy", {{"gang", "volcano"}}}});
  world_.settle();
  EXPECT_EQ(server().object("podgroups", "mnist")["spec"]["minMember"], 4);
  EXPECT_EQ(server().count("POST podgroups"), 1);
}

TEST_F(KubeClusterTest, TheGroupOfAGangFollowsTheNumberOfWorkers) {
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

TEST_F(KubeClusterTest, ScalesAnElasticJobAndTouchesNoOtherPod) {
  Json elastic = training();
  elastic.merge_patch({{"strategy", "collective"},
                       {"elastic", {{"minReplicas", 1}, {"maxReplicas", 3}}},
                       {"schedulingPolicy", {{"gang", "volcano"}}}});
  elastic["replicaSpecs"]["ps"] = nullptr;
  world_.submit("mnist", elastic);
  world_.settle();
  world_.run_all();
  world_.settle();
  const auto survivors = [&] {
    std::vector<Json> pods;
    for (const char* replica : {"chief-0", "worker-0", "evaluator-0"}) {
      pods.push_back(server().object("pods", world_.pod(replica)));
    }
    return pods;
  };
  const std::vector<Json> before = survivors();
  EXPECT_THAT(before[1].dump(), HasSubstr("MUSTER_ELASTIC"));
  scale(3);
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 worker-0.0 worker-1.0 worker-2.0");
  world_.run_all();
  world_.settle();
  scale(1);
  server().end_leaving_pods(65);
  world_.settle();
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 worker-0.0");
  scale(2);
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 worker-0.0 worker-1.1");
  EXPECT_EQ(survivors(), before);
  EXPECT_EQ(world_.job()["status"]["restarts"], 0);
  EXPECT_EQ(world_.condition("Running"), "True EnoughReplicasReady");
  EXPECT_EQ(server().object("podgroups", "mnist")["spec"]["minMember"], 2);
  EXPECT_EQ(server().count("PATCH podgroups"), 0);
}

// Its scheduler's webhook is down, or the scheduler not there at all.
TEST_F(KubeClusterTest, AJobGoesOnWhosePodGroupIsRefused) {
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

TEST_F(KubeClusterTest, ADeletedGroupIsThereAgainBeforeTheNextPodOfItsGang) {
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

TEST_F(KubeClusterTest, AGangOfAGivenSizeKeepsIt) {
  world_.submit("mnist", {{"schedulingPolicy", {{"gang", "volcano"}, {"minAvailable", 2}}}});
  world_.settle();
  scale(3);
  EXPECT_EQ(server().object("podgroups", "mnist")["spec"]["minMember"], 2);
  EXPECT_EQ(server().count("PATCH podgroups"), 0);
}

}  // namespace
}  // namespace muster::kube
