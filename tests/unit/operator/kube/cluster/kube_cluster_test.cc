#include "operator/kube/cluster/kube_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "common/job/termination_message.h"
#include "tests/unit/operator/kube/cluster/kube_cluster_fixture.h"

namespace muster::kube {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

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

TEST_F(KubeClusterTest, BringsAJobToItsEnd) {
  start();
  server().end_pod(world_.pod("chief-0"), 0);
  world_.settle();
  EXPECT_EQ(world_.condition("SuccessCriteriaMet"), "True ChiefSucceeded");
  end_evaluator_and_leavers();
  EXPECT_EQ(world_.condition("Succeeded"), "True ChiefSucceeded");
  EXPECT_EQ(world_.condition("Finished"), "True ChiefSucceeded");
  for (const Json& pod : server().objects("pods")) EXPECT_FALSE(is_tracked(pod));
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0") << "those that ended by themselves stay";
}

class TrainOnTest : public KubeClusterTest {
 protected:
  TrainOnTest() {
    world_.submit("mnist", training());
    world_.settle();
    succeed();
  }
  void succeed() {
    world_.run_all();
    for (const char* replica : {"chief-0", "worker-0"}) server().end_pod(world_.pod(replica), 0);
    world_.settle();
    end_evaluator_and_leavers();
    EXPECT_EQ(world_.condition("Finished"), "True ChiefSucceeded");
  }
  Json status(const char* field) { return member(world_.job()["status"], field); }
};

TEST_F(TrainOnTest, AJobThatHasSucceededDoesSoWithMoreEpochs) {
  const Json keys = status("security");
  change_spec({{"runPolicy", {{"backoffLimit", 3}}}});
  EXPECT_EQ(world_.condition("Finished"), "True ChiefSucceeded");
  change_spec({{"training", {{"epochs", 3}}}});
  EXPECT_EQ(world_.condition("Finished"), "");
  EXPECT_THAT(world_.events, testing::Contains("mnist: TrainsOn"));
  EXPECT_EQ(world_.pods(), "chief-0.1 evaluator-0.1 ps-0.1 worker-0.1");
  EXPECT_NE(status("security"), keys) << "as after RestartJob";
  const Json chief = server().object("pods", world_.pod("chief-0"));
  const std::string trains = chief["metadata"]["annotations"]["muster.dev/training"];
  EXPECT_EQ(Json::parse(trains)["epochs"], 3);
  succeed();
  world_.restart_operator();
  world_.run_for(60s);
  EXPECT_EQ(world_.condition("Finished"), "True ChiefSucceeded");
  EXPECT_EQ(status("trainedTo"), (Json{{"epochs", 3}}));
}

// It was finished by an operator that did not remember how long it had trained.
TEST_F(TrainOnTest, AJobThatHadFinishedBeforeAnUpgradeDoesSoOnceItsLengthIsKnown) {
  Json job = world_.job();
  job["status"].erase("trainedTo");
  server().put(job);
  world_.restart_operator();
  world_.settle();
  EXPECT_EQ(world_.condition("Finished"), "True ChiefSucceeded");
  EXPECT_EQ(status("trainedTo"), (Json{{"epochs", 1}}));
  change_spec({{"training", {{"epochs", 2}}}});
  EXPECT_EQ(world_.condition("Finished"), "");
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
  EXPECT_EQ(world_.cluster().job_states().counts().at("lab").at("Running"), 1);
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
  EXPECT_THAT(world_.cluster().job_states().counts(), IsEmpty());
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

Json with_account(const std::string& name) {
  return {
      {"replicaSpecs", {{"worker", {{"template", {{"spec", {{"serviceAccountName", name}}}}}}}}}};
}

TEST_F(KubeClusterTest, ATemplateOfAServiceAccountThatIsNotAllowedIsNotRun) {
  world_.allowed_accounts = {"trainer"};
  world_.restart_operator();
  world_.submit("good", with_account("trainer"));
  world_.submit("bad", with_account("admin"));
  world_.run_for(60s);
  EXPECT_EQ(world_.condition("Accepted", "good"), "True Valid");
  EXPECT_EQ(world_.condition("Accepted", "bad"), "False InvalidTemplate");
  for (const Json& pod : server().objects("pods"))
    EXPECT_EQ(pod["metadata"]["labels"]["muster.dev/job"], "good");
}

TEST_F(KubeClusterTest, AServiceAccountThatIsNoLongerAllowedGetsNoFurtherPod) {
  world_.submit("mnist", with_account("admin"));
  world_.settle();
  world_.run_all();
  world_.settle();
  world_.allowed_accounts = {"trainer"};
  world_.restart_operator();
  server().end_pod(world_.pod("worker-0"), 1);
  world_.run_for(60s);
  EXPECT_EQ(world_.condition("Accepted"), "False InvalidTemplate");
  EXPECT_EQ(world_.pods().find("worker-0.1"), std::string::npos) << world_.pods();
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
  EXPECT_THAT(world_.cluster().job_states().counts(), IsEmpty());
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

}  // namespace
}  // namespace muster::kube
