#include "operator/kube/tfjob/tfjob_reconciler.h"

#include <gmock/gmock.h>

#include "operator/convert/tfjob.h"
#include "operator/kube/tfjob/tfjob_status.h"
#include "tests/unit/operator/kube/chart_rights.h"
#include "tests/unit/operator/kube/cluster/kube_cluster_fixture.h"

namespace muster::kube {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Count = TfJobReconciler::Count;

class TfJobReconcilerTest : public KubeClusterTest {
 protected:
  // deploy/muster.yaml is the chart with its defaults, which runs no TFJobs.
  TfJobReconcilerTest() {
    server().permits = [rights = chart_rights({"muster", "muster-nodes"})](const Request& request) {
      const bool of_tfjobs = request.path.find("/tfjobs/") != std::string::npos ||
                             (request.path.find("/services/") != std::string::npos &&
                              request.method == Method::patch) ||
                             (request.path.find("/trainingjobs") != std::string::npos &&
                              (request.method == Method::post || request.method == Method::put));
      return of_tfjobs || rights(request);
    };
  }

  void apply(const Json& policy = Json::object(), const std::string& name = "mnist") {
    Json job = Json::parse(R"({
      "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"namespace": "lab"},
      "spec": {"tfReplicaSpecs": {}}})");
    job["metadata"]["name"] = name;
    job["metadata"]["generation"] = ++generation_;
    const Json replica = Json::parse(R"({"replicas": 1, "restartPolicy": "OnFailure",
      "template": {"spec": {"containers": [{"name": "tensorflow", "image": "tf"}]}}})");
    for (const char* type : {"PS", "Worker"}) job["spec"]["tfReplicaSpecs"][type] = replica;
    job["spec"]["runPolicy"] = policy;
    server().put(job);
    world_.settle();
  }
  void apply_and_run() {
    apply();
    world_.run_all();
    world_.run_for(5s);
  }
  void change(const Json& change_of_spec) {
    Json job = tfjob();
    job["spec"].merge_patch(change_of_spec);
    job["metadata"]["generation"] = ++generation_;
    server().put(job);
    world_.settle();
  }
  Json tfjob(const std::string& name = "mnist") { return server().object("tfjobs", name); }
  // The type of the last condition, as `kubectl get tfjobs` shows it.
  std::string state(const std::string& name = "mnist") {
    const Json conditions = member(member(tfjob(name), "status"), "conditions");
    return conditions.empty() ? "" : conditions.back()["type"];
  }
  Json counts(const std::string& type) { return tfjob()["status"]["replicaStatuses"][type]; }
  std::string condition(const std::string& type, const std::string& name = "mnist") {
    return string_or(tfjob_condition(tfjob(name)["status"], type), "status", "");
  }
  void apply_wrong(const Json& policy = Json::object()) {
    Json job = Json::parse(R"({"apiVersion": "kubeflow.org/v1", "kind": "TFJob",
      "metadata": {"namespace": "lab", "name": "wrong", "generation": 1},
      "spec": {"tfReplicaSpecs": {"Boss": {}}}})");
    job["spec"]["runPolicy"] = policy;
    server().put(job);
    world_.run_for(30s);
  }
  void succeed() {
    server().end_pod(world_.pod("worker-0"), 0);
    world_.settle();
    server().end_leaving_pods();
    world_.run_for(5s);
  }

  // The API server refuses specs of which this is true.
  void refuse_spec(const std::function<bool(const Json& spec)>& is_wrong = [](const Json&) {
    return true;
  }) {
    server().intercept = [=](const Request& request) -> std::optional<Response> {
      const bool writes = request.method == Method::put && !request.path.ends_with("/status") &&
                          request.path.find("/trainingjobs/") != std::string::npos;
      if (!writes || !is_wrong(Json::parse(request.body)["spec"])) return std::nullopt;
      return refusal(422, "Invalid", "spec: it cannot change");
    };
  }

 private:
  int generation_ = 0;
};

TEST_F(TfJobReconcilerTest, ATfJobRunsToItsEnd) {
  apply();
  EXPECT_EQ(state(), "Created");
  EXPECT_EQ(world_.pods(), "ps-0.0 worker-0.0");
  const Json labels = server().object("pods", world_.pod("worker-0"))["metadata"]["labels"];
  EXPECT_EQ(labels["training.kubeflow.org/job-name"], "mnist");
  EXPECT_EQ(labels["training.kubeflow.org/replica-type"], "worker");
  EXPECT_EQ(labels["training.kubeflow.org/replica-index"], "0");
  EXPECT_EQ(labels["training.kubeflow.org/job-role"], "master");
  EXPECT_EQ(counts("Worker")["active"], 0) << "its pod is there and does not run";
  world_.run_all();
  world_.run_for(5s);
  EXPECT_EQ(state(), "Running");
  EXPECT_EQ(counts("Worker")["active"], 1);
  succeed();
  EXPECT_EQ(state(), "Succeeded");
  EXPECT_TRUE(tfjob()["status"].contains("completionTime"));
  EXPECT_THAT(world_.events, Contains("TFJob mnist: TFJobRunning"));
  EXPECT_THAT(world_.events, Contains("TFJob mnist: TFJobSucceeded"));
  EXPECT_EQ(world_.tfjobs_counted[Count::created], 1);
  EXPECT_EQ(world_.tfjobs_counted[Count::successful], 1);
  EXPECT_EQ(world_.tfjobs_counted[Count::failed], 0);
}

// kubeflow.org/v1 tells it in the pass that sees the deciding end, while a ps still leaves.
TEST_F(TfJobReconcilerTest, TheEndIsToldWhenItIsDecided) {
  const struct {
    int exit_code;
    const char* state;
    Count count;
  } cases[] = {{0, "Succeeded", Count::successful}, {1, "Failed", Count::failed}};
  for (const auto& [exit_code, expected, count] : cases) {
    apply({{"backoffLimit", 0}, {"ttlSecondsAfterFinished", 100}});
    world_.run_all();
    world_.run_for(5s);
    server().end_pod(world_.pod("worker-0"), exit_code);
    world_.settle();
    EXPECT_EQ(state(), expected);
    EXPECT_EQ(condition("Running"), "False");
    EXPECT_EQ(world_.condition("Finished"), "") << "the ps is still there";
    const Json completed = tfjob()["status"]["completionTime"];
    ASSERT_TRUE(completed.is_string()) << expected;
    world_.run_for(20s);
    server().end_leaving_pods();
    world_.run_for(5s);
    EXPECT_NE(world_.condition("Finished"), "");
    EXPECT_EQ(tfjob()["status"]["completionTime"], completed);
    EXPECT_EQ(counts("PS")["active"], 0);
    EXPECT_EQ(world_.tfjobs_counted[count], 1);
    world_.run_for(70s);
    EXPECT_TRUE(server().has("tfjobs", "mnist"));
    world_.run_for(10s);
    EXPECT_FALSE(server().has("tfjobs", "mnist"));
  }
}

TEST_F(TfJobReconcilerTest, TheTimeToLiveWaitsForTheLastReplica) {
  apply({{"ttlSecondsAfterFinished", 5}});
  world_.run_all();
  world_.run_for(5s);
  server().end_pod(world_.pod("worker-0"), 0);
  world_.run_for(20s);
  EXPECT_EQ(state(), "Succeeded");
  server().end_leaving_pods();
  world_.run_for(1s);
  EXPECT_FALSE(server().has("tfjobs", "mnist"));
}

TEST_F(TfJobReconcilerTest, RunsThoughAPsDoesNotYet) {
  apply();
  server().run_pod("mnist-worker-0");
  world_.settle();
  EXPECT_EQ(state(), "Running");
  EXPECT_EQ(world_.condition("Running").substr(0, 5), "False");
  EXPECT_EQ(counts("PS")["active"], 0);
}

TEST_F(TfJobReconcilerTest, AStatusIsWrittenOnceUntilThePodsExist) {
  int written = 0;
  server().intercept = [&](const Request& request) -> std::optional<Response> {
    written += request.path.find("/tfjobs/mnist/status") != std::string::npos ? 1 : 0;
    return std::nullopt;
  };
  apply();
  EXPECT_EQ(world_.pods(), "ps-0.0 worker-0.0");
  EXPECT_EQ(state(), "Created");
  EXPECT_EQ(written, 1);
}

// The training-operator runs such a job again (kubeflow/trainer #1186).
TEST_F(TfJobReconcilerTest, AFinishedTfJobIsNotRunAgainWhateverIsDeleted) {
  apply();
  world_.run_all();
  succeed();
  server().remove("trainingjobs", "mnist");
  for (const Json& pod : server().objects("pods")) server().remove("pods", pod["metadata"]["name"]);
  world_.restart_operator();
  world_.wake_tfjob("lab/mnist", world_.time);
  world_.run_for(60s);
  EXPECT_FALSE(server().has("trainingjobs", "mnist"));
  EXPECT_EQ(state(), "Succeeded");
  EXPECT_EQ(world_.tfjobs_counted[Count::created], 1);
}

TEST_F(TfJobReconcilerTest, GoesWhenItsTimeToLiveIsOver) {
  apply({{"ttlSecondsAfterFinished", 100}});
  world_.run_all();
  succeed();
  world_.run_for(80s);
  EXPECT_TRUE(server().has("tfjobs", "mnist"));
  world_.run_for(30s);
  EXPECT_FALSE(server().has("tfjobs", "mnist"));
  EXPECT_EQ(world_.tfjobs_counted[Count::deleted], 1);
}

TEST_F(TfJobReconcilerTest, SuspendsAndResumes) {
  apply({{"suspend", true}});
  world_.run_for(5s);
  EXPECT_EQ(state(), "Suspended");
  EXPECT_EQ(world_.pods(), "");
  change({{"runPolicy", {{"suspend", nullptr}}}});
  world_.run_all();
  world_.run_for(5s);
  EXPECT_EQ(state(), "Running");
  EXPECT_THAT(world_.events, Contains("TFJob mnist: TFJobSuspended"));
  EXPECT_THAT(world_.events, Contains("TFJob mnist: TFJobResumed"));
}

TEST_F(TfJobReconcilerTest, AnInvalidOneFailsAndRunsOnceItIsMended) {
  apply();
  server().remove("trainingjobs", "mnist");
  server().remove("tfjobs", "mnist");
  world_.settle();
  apply_wrong();
  EXPECT_EQ(state("wrong"), "Failed");
  const Json failed = tfjob_condition(tfjob("wrong")["status"], "Failed");
  EXPECT_EQ(failed["reason"], "TFJobFailedValidation");
  EXPECT_THAT(failed["message"].get<std::string>(), HasSubstr("tfReplicaSpecs.Boss"));
  EXPECT_EQ(world_.tfjobs_counted[Count::failed], 1);
  apply({}, "wrong");
  world_.settle();
  EXPECT_TRUE(server().has("trainingjobs", "wrong"));
  EXPECT_EQ(state("wrong"), "Created");
}

TEST_F(TfJobReconcilerTest, OneThatIsRefusedCountsAmongTheCreatedOnesAsOftenAsAmongTheFailedOnes) {
  int refusals = 0;
  server().intercept = [&](const Request& request) -> std::optional<Response> {
    const bool writes = request.method == Method::put && request.path.ends_with("/status");
    if (!writes || ++refusals > 2) return std::nullopt;
    return refusal(503, "ServiceUnavailable", "try again");
  };
  apply_wrong();
  EXPECT_EQ(state("wrong"), "Failed");
  EXPECT_GT(refusals, 2);
  EXPECT_EQ(world_.tfjobs_counted[Count::created], 1);
  EXPECT_EQ(world_.tfjobs_counted[Count::failed], 1);
  world_.restart_operator();
  world_.wake_tfjob("lab/wrong", world_.time);
  world_.run_for(60s);
  EXPECT_EQ(world_.tfjobs_counted[Count::created], 1);
  // Mended, it is another job to count, which runs.
  apply({}, "wrong");
  EXPECT_EQ(world_.tfjobs_counted[Count::created], 2);
  EXPECT_EQ(world_.tfjobs_counted[Count::failed], 1);
}

TEST_F(TfJobReconcilerTest, OneThatWasRefusedStaysAsItIsWhenTheOperatorStartsAnew) {
  apply_wrong();
  const Json before = tfjob("wrong");
  world_.restart_operator();
  world_.wake_tfjob("lab/wrong", world_.time);
  world_.run_for(60s);
  EXPECT_EQ(tfjob("wrong"), before);
  EXPECT_THAT(world_.reconciler().refused(), ElementsAre("lab/wrong"));
  apply({}, "wrong");
  EXPECT_THAT(world_.reconciler().refused(), IsEmpty());
}

TEST_F(TfJobReconcilerTest, OneThatWasRefusedGoesWhenItsTimeToLiveIsOver) {
  apply_wrong({{"ttlSecondsAfterFinished", 100}});
  world_.restart_operator();
  world_.wake_tfjob("lab/wrong", world_.time);
  world_.run_for(50s);
  EXPECT_TRUE(server().has("tfjobs", "wrong"));
  world_.run_for(40s);
  EXPECT_FALSE(server().has("tfjobs", "wrong"));
}

TEST_F(TfJobReconcilerTest, OneThatWasRefusedForItsTimeToLiveStays) {
  apply_wrong({{"ttlSecondsAfterFinished", -1}});
  EXPECT_EQ(state("wrong"), "Failed");
  world_.run_for(100s);
  EXPECT_TRUE(server().has("tfjobs", "wrong"));
}

TEST_F(TfJobReconcilerTest, WhatTheApiServerRefusesIsSaidInTheFieldsOfTheTfJob) {
  server().intercept = [](const Request& request) -> std::optional<Response> {
    const bool creates = request.method == Method::post && request.path.ends_with("/trainingjobs");
    if (!creates) return std::nullopt;
    return refusal(422, "Invalid", "spec.replicaSpecs.worker.replicas: Invalid value: 1001");
  };
  const auto message_with = [&](int workers) {
    Json job = Json::parse(R"({"apiVersion": "kubeflow.org/v1", "kind": "TFJob",
      "metadata": {"namespace": "lab", "name": "wrong"}, "spec": {"tfReplicaSpecs": {"Worker":
      {"template": {"spec": {"containers": [{"name": "tensorflow", "image": "tf"}]}}}}}})");
    job["metadata"]["generation"] = workers;
    job["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] = workers;
    server().put(job);
    world_.run_for(5s);
    return tfjob_condition(tfjob("wrong")["status"], "Failed")["message"].get<std::string>();
  };
  EXPECT_THAT(message_with(1001),
              HasSubstr("spec.tfReplicaSpecs.Worker.replicas: expected an integer from 0 to 1000"));
  // If we find nothing wrong, the message has the API server's words.
  EXPECT_THAT(message_with(2), HasSubstr("spec.replicaSpecs.worker.replicas: Invalid value"));
}

TEST_F(TfJobReconcilerTest, ATrainingJobOfThatNameIsLeftAloneAndSaid) {
  world_.submit();
  world_.settle();
  apply();
  EXPECT_THAT(world_.events, Contains("TFJob mnist: TFJobNameTaken"));
  EXPECT_EQ(state(), "");
  server().remove("trainingjobs", "mnist");
  server().end_leaving_pods();
  world_.run_for(60s);
  EXPECT_EQ(world_.job()["metadata"]["ownerReferences"][0]["kind"], "TFJob");
}

TEST_F(TfJobReconcilerTest, OthersAreLeftAlone) {
  apply({{"managedBy", "kueue.x-k8s.io/multikueue"}});
  world_.run_for(60s);
  EXPECT_FALSE(server().has("trainingjobs", "mnist"));
  EXPECT_FALSE(tfjob().contains("status"));
}

TEST_F(TfJobReconcilerTest, OneOfALongNameHasAStatusToo) {
  const std::string name(60, 'a');
  apply({}, name);
  EXPECT_EQ(state(name), "Created");
  EXPECT_TRUE(server().has("trainingjobs", convert::job_name_of_tfjob(name)));
}

TEST_F(TfJobReconcilerTest, AChangeThatTheServerRefusesIsSaidOnce) {
  apply();
  refuse_spec();
  change({{"successPolicy", "AllWorkers"}});
  world_.run_for(60s);
  EXPECT_EQ(std::ranges::count(world_.events, "TFJob mnist: TFJobUpdateRefused"), 1);
  server().intercept = nullptr;
  change({{"successPolicy", ""}});
  EXPECT_EQ(world_.job()["metadata"]["annotations"][kTfJobGenerationAnnotation], "3");
}

// The status of the TrainingJob is written and that of the TFJob is not.
TEST_F(TfJobReconcilerTest, TheStatusFollowsThoughAWriteOfItFails) {
  apply();
  world_.run_all();
  refuse(Method::put, "/tfjobs/", refusal(500, "InternalError", "etcd is away"), 3);
  world_.run_for(60s);
  EXPECT_EQ(state(), "Running");
  EXPECT_THAT(world_.events, Contains("TFJob mnist: TFJobRunning"));
}

// The API server gives the fields of an object in the order of their names.
TEST_F(TfJobReconcilerTest, AStatusThatIsTheSameIsNotWrittenAgain) {
  apply_and_run();
  Json job = tfjob();
  job["status"] = Json::parse(nlohmann::json::parse(job["status"].dump()).dump());
  server().put(job);
  world_.settle();
  const int before = server().count("PUT tfjobs/status");
  EXPECT_GT(before, 0);
  world_.restart_operator();
  world_.wake_tfjob("lab/mnist", world_.time);
  world_.run_for(60s);
  EXPECT_EQ(server().count("PUT tfjobs/status"), before);
}

TEST_F(TfJobReconcilerTest, WhatTheTfJobNoLongerSaysIsTakenOut) {
  apply({{"activeDeadlineSeconds", 1000}, {"suspend", true}});
  world_.run_for(5s);
  change({{"runPolicy", {{"activeDeadlineSeconds", nullptr}}}});
  world_.run_for(5s);
  EXPECT_FALSE(world_.job()["spec"]["runPolicy"].contains("activeDeadlineSeconds"));
}

// Kueue suspends a job and gives it back its template in one write.
TEST_F(TfJobReconcilerTest, WhatMayChangeOnceItIsSuspendedIsTriedThen) {
  apply_and_run();
  refuse_spec([&](const Json& spec) {
    return spec["runPolicy"].contains("backoffLimit") && spec["runPolicy"]["backoffLimit"] == 7 &&
           world_.condition("Suspended").find("True") == std::string::npos;
  });
  change({{"runPolicy", {{"suspend", true}, {"backoffLimit", 7}}}});
  for (int role = 0; role < 2; ++role) {
    server().end_leaving_pods();
    world_.run_for(10s);
  }
  EXPECT_EQ(state(), "Suspended");
  EXPECT_EQ(world_.job()["spec"]["runPolicy"]["backoffLimit"], 7);
}

TEST_F(TfJobReconcilerTest, AJobIsDrivenThoughTheStatusOfItsTfJobCannotBeWritten) {
  apply();
  refuse_all(Method::put, "/tfjobs/", refusal(403, "Forbidden", "no"));
  world_.run_all();
  world_.run_for(5s);
  server().end_pod(world_.pod("worker-0"), 143);
  world_.run_for(60s);
  EXPECT_EQ(world_.pods(), "ps-0.0 worker-0.1");
}

TEST_F(TfJobReconcilerTest, ASuccessorTakesTheNameOfThePodThatHasEnded) {
  apply_and_run();
  for (int attempt = 1; attempt <= 2; ++attempt) {
    server().end_pod("mnist-worker-0", 143);
    world_.run_for(60s);
    const Json pod = server().object("pods", "mnist-worker-0");
    EXPECT_EQ(pod["metadata"]["labels"]["muster.dev/attempt"], std::to_string(attempt));
    server().run_pod("mnist-worker-0");
    world_.run_for(5s);
  }
  EXPECT_EQ(state(), "Running");
  EXPECT_EQ(world_.pods(), "ps-0.0 worker-0.2");
  EXPECT_EQ(world_.job()["status"]["restarts"], 2) << "no end is lost with its pod";
}

// Its end is counted, and the successor has its name only when it has gone.
TEST_F(TfJobReconcilerTest, ASuccessorWaitsForAPodThatIsStillThere) {
  apply_and_run();
  server().intercept = [](const Request& request) -> std::optional<Response> {
    const bool removes =
        request.method == Method::remove && request.path.ends_with("/mnist-worker-0");
    return removes ? std::optional(refusal(500, "InternalError", "etcd is away")) : std::nullopt;
  };
  server().end_pod("mnist-worker-0", 143);
  world_.run_for(60s);
  EXPECT_EQ(world_.pods(), "ps-0.0 worker-0.0");
  server().intercept = nullptr;
  world_.run_for(60s);
  EXPECT_EQ(world_.pods(), "ps-0.0 worker-0.1");
}

// Two pods of one name cannot be, so this is told: a TrainingJob does not wait.
TEST_F(TfJobReconcilerTest, ASuccessorWaitsForThePodOfALostNode) {
  apply_and_run();
  server().put(Json::parse(R"({"kind": "Node", "metadata": {"name": "node-1"}, "spec": {"taints": [
      {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]}})"));
  server().set_status("mnist-worker-0", Json::parse(R"({"conditions": [
      {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}]})"));
  server().remove("pods", "mnist-worker-0");
  world_.run_for(60s);
  EXPECT_EQ(world_.pods(), "ps-0.0 worker-0.0");
  EXPECT_THAT(world_.events, Contains("TFJob mnist: PodNameIsHeld"));
  server().end_leaving_pods();
  world_.run_for(60s);
  EXPECT_EQ(world_.pods(), "ps-0.0 worker-0.1");
}

TEST_F(TfJobReconcilerTest, OthersDoNotWaitForAReplicaWhoseNameIsHeld) {
  apply();
  change({{"enableDynamicWorker", true}, {"tfReplicaSpecs", {{"Worker", {{"replicas", 2}}}}}});
  world_.run_all();
  world_.run_for(5s);
  server().intercept = [](const Request& request) -> std::optional<Response> {
    if (request.method != Method::remove || !request.path.ends_with("/pods/mnist-worker-0"))
      return std::nullopt;
    Response asked;  // it is asked to leave, and stays for a while
    asked.status = 200;
    asked.body = R"({"kind": "Status", "status": "Success"})";
    return asked;
  };
  server().end_pod("mnist-worker-0", 143);
  server().end_pod("mnist-worker-1", 143);
  world_.run_for(60s);
  EXPECT_EQ(world_.pods(), "ps-0.0 worker-0.0 worker-1.1");
}

// The pods of both have the same names.
TEST_F(TfJobReconcilerTest, OneThatIsMadeAnewAtOnceWaitsForThePodsOfTheFirst) {
  apply_and_run();
  server().remove("tfjobs", "mnist");
  apply();
  world_.run_for(5s);
  EXPECT_NE(world_.condition("Accepted"), "False NameConflict");
  EXPECT_THAT(world_.events, Contains("TFJob mnist: PodNameIsHeld"));
  server().end_leaving_pods();
  world_.run_for(60s);
  world_.run_all();
  world_.run_for(5s);
  EXPECT_EQ(state(), "Running");
}

// Quotas of count/pods count pods that have ended.
TEST_F(TfJobReconcilerTest, APodThatHasEndedIsRemovedBeforeItsSuccessorIsAskedFor) {
  apply_and_run();
  server().intercept = [this](const Request& request) -> std::optional<Response> {
    if (request.method != Method::post || !request.path.ends_with("/pods")) return std::nullopt;
    if (server().objects("pods").size() < 2) return std::nullopt;
    return refusal(403, "Forbidden", "exceeded quota: q, requested: count/pods=1");
  };
  server().end_pod("mnist-worker-0", 143);
  world_.run_for(60s);
  EXPECT_EQ(world_.pods(), "ps-0.0 worker-0.1");
}

TEST_F(TfJobReconcilerTest, ANameThatNoServiceCanHaveIsRefused) {
  apply({}, "mnist.v2");
  EXPECT_EQ(state("mnist.v2"), "Failed");
  const Json failed = tfjob_condition(tfjob("mnist.v2")["status"], "Failed");
  EXPECT_THAT(failed["message"].get<std::string>(), HasSubstr("metadata.name: expected small"));
}

// The one that leads had gone to sleep before it sent it.
TEST_F(TfJobReconcilerTest, ALateCreationOfAnEarlierAttemptChangesNothing) {
  apply_and_run();
  server().end_pod("mnist-worker-0", 143);
  world_.run_for(60s);
  const Json pod = server().object("pods", "mnist-worker-0");
  api::TrainingJob job = *world_.cluster().get("lab/mnist");
  const plan::CreateReplica late{api::Role::worker, 0, 0, 0};
  EXPECT_THROW(world_.cluster().create(job, {&late, 1}), Unavailable);
  EXPECT_EQ(server().object("pods", "mnist-worker-0"), pod);
}

TEST_F(TfJobReconcilerTest, ServicesOfTheTrainingOperatorAreTaken) {
  server().put(
      Json::parse(R"({"kind": "Service", "metadata": {"namespace": "lab", "name": "mnist-ps-0",
      "ownerReferences": [{"kind": "TFJob", "name": "mnist", "uid": "v1", "controller": true}]}})"));
  apply();
  EXPECT_EQ(world_.pods(), "") << "it is another TFJob's";
  Json service = server().object("services", "mnist-ps-0");
  service["metadata"]["ownerReferences"][0]["uid"] = tfjob()["metadata"]["uid"];
  server().put(service);
  world_.run_for(60s);
  EXPECT_EQ(world_.pods(), "ps-0.0 worker-0.0");
  EXPECT_TRUE(server().has("services", "mnist-worker-0"));
  EXPECT_EQ(server().object("services", "mnist-ps-0")["spec"]["publishNotReadyAddresses"], true);
  server().remove("services", "mnist-ps-0");
  world_.settle();
  EXPECT_TRUE(server().has("services", "mnist-ps-0")) << "it was in view by its new label";
}

TEST_F(TfJobReconcilerTest, WorkersThatComeLaterHaveTheirServices) {
  apply();
  change({{"enableDynamicWorker", true}, {"tfReplicaSpecs", {{"Worker", {{"replicas", 3}}}}}});
  world_.run_for(5s);
  for (const char* name : {"mnist-ps-0", "mnist-worker-0", "mnist-worker-1", "mnist-worker-2"})
    EXPECT_TRUE(server().has("services", name)) << name;
  server().remove("services", "mnist-worker-1");
  world_.settle();
  EXPECT_TRUE(server().has("services", "mnist-worker-1"));
}

TEST_F(TfJobReconcilerTest, AStatusIsNotWrittenToALaterTfJobOfTheSameName) {
  apply_and_run();
  server().intercept = [this](const Request& request) -> std::optional<Response> {
    if (request.method != Method::put || request.path.find("/tfjobs/") == std::string::npos)
      return std::nullopt;
    server().intercept = nullptr;
    server().remove("tfjobs", "mnist");
    Json job = Json::parse(request.body);
    job["metadata"].erase("uid");
    job.erase("status");
    server().put(job);
    return std::nullopt;
  };
  server().end_pod(world_.pod("worker-0"), 0);
  world_.settle();
  server().end_leaving_pods();
  world_.run_for(60s);
  EXPECT_EQ(state(), "Created");
  EXPECT_EQ(world_.pods(), "ps-0.0 worker-0.0");  // of the new one
}

}  // namespace
}  // namespace muster::kube
