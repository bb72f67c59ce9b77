#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "common/documents/document.h"
#include "common/documents/json.h"
#include "common/net/http_get.h"
#include "tests/integration/kube/api_server.h"

namespace muster::integration {

namespace {

using ::testing::HasSubstr;

constexpr const char* kAddress = "127.0.0.1:28080";
constexpr const char* kNamespace = "muster-system";
constexpr const char* kName = "muster";  // of the operator's account, its Lease and its Deployment

constexpr const char* kHttpPeers = R"([{"podSelector": {"matchLabels": {"app": "operator"}}}])";

// A scheduler's definition of its gangs, as far as anybody here looks at it.
constexpr const char* kPodGroups = R"(
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: podgroups.scheduling.volcano.sh}
spec:
  group: scheduling.volcano.sh
  scope: Namespaced
  names: {kind: PodGroup, plural: podgroups, singular: podgroup}
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
)";

// muster-operator on an API server without nodes: what a kubelet says of pods, the test says. It
// has the rights that deploy/ gives its account, and no others.
class OperatorTest : public testing::Test {
 protected:
  OperatorTest() {
    run({"apply", "--server-side", "-k", MUSTER_SOURCE_DIR "/deploy"});
    // `kubectl wait` fails where there are no conditions yet.
    EXPECT_TRUE(eventually([&] { return server_.kubectl({"get", "trainingjobs"}).code == 0; }));
    start();
  }

  void start() {
    operator_.reset();
    operator_ = std::make_unique<Process>(
        std::vector<std::string>{MUSTER_BINARY_DIR "/bin/muster-operator", "--kubeconfig",
                                 account(), "--http-address", kAddress, "--lease-namespace",
                                 kNamespace, "--lease-name", kName, "--lease-seconds", "5",
                                 "--replica-http-peers", kHttpPeers},
        std::map<std::string, std::string>{}, scratch() / "operator.log", Process::Limits{});
  }

  // A kubeconfig of the operator's service account.
  std::string account() {
    std::string token = run({"create", "token", kName, "--namespace", kNamespace});
    token.erase(token.find_last_not_of('\n') + 1);
    Json config = Document::load(server_.kubeconfig()).value();
    config["users"][0]["user"] = {{"token", token}};
    std::filesystem::create_directories(scratch());
    const std::filesystem::path path = scratch() / "account.kubeconfig";
    std::ofstream(path) << config.dump();
    return path;
  }

  // muster-operator release-pods, to its end.
  std::optional<int> release_pods(const std::string& seconds) {
    return Process({MUSTER_BINARY_DIR "/bin/muster-operator", "release-pods", "--kubeconfig",
                    server_.kubeconfig(), "--scale-down", std::string(kNamespace) + "/" + kName,
                    "--lease-namespace", kNamespace, "--lease-name", kName, "--lease-seconds", "5",
                    "--timeout-seconds", seconds},
                   {}, scratch() / "release.log", Process::Limits{})
        .wait();
  }

  std::string run(const std::vector<std::string>& arguments, const std::string& input = "") {
    const ApiServer::Output output = server_.kubectl(arguments, input);
    EXPECT_EQ(output.code, 0) << output.text;
    return output.text;
  }

  // A job of one ps, chief, worker and evaluator of an image of the user's own.
  static Json manifest(const std::string& name, const std::string& image = "tf") {
    const Json role = {
        {"template", {{"spec", {{"containers", {{{"name", "tensorflow"}, {"image", image}}}}}}}}};
    return {{"apiVersion", "muster.dev/v1alpha1"},
            {"kind", "TrainingJob"},
            {"metadata", {{"name", name}}},
            {"spec",
             {{"replicaSpecs",
               {{"ps", role}, {"chief", role}, {"worker", role}, {"evaluator", role}}}}}};
  }
  void submit(const std::string& name, const std::string& image = "tf",
              const std::string& gang = "none") {
    Json job = manifest(name, image);
    job["spec"]["schedulingPolicy"] = {{"gang", gang}};
    run({"create", "-f", "-"}, job.dump());
  }
  // With a field of the worker's pods that no API knows.
  void submit_with(const std::string& name, Json anything) {
    Json job = manifest(name);
    job["spec"]["replicaSpecs"]["worker"]["template"]["spec"]["anything"] = std::move(anything);
    run({"create", "-f", "-"}, job.dump());
  }

  std::vector<Json> pods(const std::string& selector = "muster.dev/job") {
    const Json list = Json::parse(run({"get", "pods", "-l", selector, "-o", "json"}));
    return {list["items"].begin(), list["items"].end()};
  }

  void patch_status(const Json& pod, const Json& status) {
    run({"patch", "pod", pod["metadata"]["name"], "--subresource=status", "--type=merge", "-p",
         Json{{"status", status}}.dump()});
  }

  static Json status_of(const char* phase, const Json& state, bool ready) {
    return {{"phase", phase},
            {"containerStatuses",
             {{{"name", "tensorflow"},
               {"image", "tf"},
               {"imageID", ""},
               {"ready", ready},
               {"restartCount", 0},
               {"state", state}}}}};
  }
  void run_all() {
    for (const Json& pod : pods()) {
      patch_status(pod, status_of("Running", {{"running", {{"startedAt", "2026-01-02T03:04:05Z"}}}},
                                  /*ready=*/true));
    }
  }
  void end(const std::string& role, int code) {
    const Json terminated = {{"exitCode", code},
                             {"startedAt", "2026-01-02T03:04:05Z"},
                             {"finishedAt", "2026-01-02T03:04:06Z"}};
    for (const Json& pod : pods("muster.dev/role=" + role)) {
      if (string_or(pod["status"], "phase", "") != "Running") continue;
      patch_status(
          pod, status_of(code == 0 ? "Succeeded" : "Failed", {{"terminated", terminated}}, false));
    }
  }
  void wait_for(const std::string& condition, const std::string& job) {
    run({"wait", "--for=condition=" + condition, "trainingjob/" + job, "--timeout=60s"});
  }

  ApiServer server_;
  std::unique_ptr<Process> operator_;
};

TEST_F(OperatorTest, BringsAJobToItsEndOnARealApiServer) {
  submit("mnist");
  ASSERT_TRUE(eventually([&] { return pods().size() == 4; }));
  wait_for("Accepted", "mnist");
  run_all();
  wait_for("Running", "mnist");
  const std::string shown = run({"get", "tj", "mnist"});
  EXPECT_THAT(shown, HasSubstr("4/4"));

  end("worker", 1);
  ASSERT_TRUE(eventually([&] {
    const auto workers = pods("muster.dev/role=worker,muster.dev/attempt=1");
    return workers.size() == 1;
  }));
  run_all();
  end("chief", 0);
  end("evaluator", 0);
  wait_for("Finished", "mnist");
  EXPECT_EQ(run({"get", "tj", "mnist", "-o", "jsonpath={.status.restarts} {.status.state}"}),
            "1 Succeeded");
  for (const Json& pod : pods()) {
    EXPECT_FALSE(pod["metadata"].contains("finalizers")) << pod["metadata"]["name"];
  }
  EXPECT_THAT(run({"get", "events"}), HasSubstr("ChiefSucceeded"));
  EXPECT_THAT(http_get(kAddress, "/metrics", std::chrono::seconds(5), 1 << 20),
              HasSubstr("state=\"Succeeded\"} 1"));
  run({"delete", "tj", "mnist", "--wait=true", "--timeout=60s"});
}

TEST_F(OperatorTest, RefusesATemplateThatTheServerWouldRefuse) {
  submit("broken", "an image with spaces ");
  ASSERT_TRUE(eventually([&] {
    return run({"get", "tj", "broken", "-o",
                "jsonpath={.status.conditions[?(@.type=='Accepted')]"
                ".reason}"}) == "InvalidTemplate";
  }));
  EXPECT_TRUE(pods().empty());
}

TEST_F(OperatorTest, AGangWaitsForItsSchedulerAndSaysSo) {
  submit("mnist", "tf", "volcano");
  const auto accepted = [&](const std::string& field) {
    return run({"get", "tj", "mnist", "-o",
                "jsonpath={.status.conditions[?(@.type=='Accepted')]." + field + "}"});
  };
  ASSERT_TRUE(eventually([&] { return accepted("reason") == "Unknown"; }));
  EXPECT_THAT(accepted("message"), HasSubstr("/podgroups: 404"));
  EXPECT_TRUE(pods().empty());
  run({"create", "-f", "-"}, kPodGroups);
  ASSERT_TRUE(eventually([&] { return pods().size() == 4; }));
  EXPECT_EQ(run({"get", "podgroup", "mnist", "-o", "jsonpath={.spec.minMember}"}), "4");
  EXPECT_TRUE(eventually([&] { return accepted("status") == "True"; }));
}

// Whatever a user puts where anything may stand, all other jobs are seen, by a watch and by a list.
TEST_F(OperatorTest, SeesAllJobsBesideOnesThatAreHardToRead) {
  const auto accepted = [&](const std::string& job, const std::string& reason) {
    return eventually([&] {
      return run({"get", "tj", job, "-o",
                  "jsonpath={.status.conditions[?(@.type=='Accepted')].reason}"}) == reason;
    });
  };
  const auto raw = [&](const std::string& job) {
    return run(
        {"get", "--raw", "/apis/muster.dev/v1alpha1/namespaces/default/trainingjobs/" + job});
  };
  submit_with("wide", 1e20);
  EXPECT_THAT(raw("wide"), HasSubstr("\"anything\":100000000000000000000,"));
  EXPECT_TRUE(accepted("wide", "InvalidTemplate"));
  submit("a");
  EXPECT_TRUE(accepted("a", "Valid"));
  run({"patch", "tj", "a", "--subresource=status", "--type=merge", "-p",
       R"({"status": {"progress": {"etaSeconds": 1e20}}})"});
  EXPECT_THAT(raw("a"), HasSubstr("\"etaSeconds\":100000000000000000000"));

  Json nested = Json::array();
  for (int depth = 0; depth < 2000; ++depth) nested = Json::array({std::move(nested)});
  submit_with("deep", std::move(nested));
  submit("b");
  EXPECT_TRUE(accepted("b", "Valid"));

  operator_->signal(SIGKILL);
  operator_->wait();
  submit_with("wide-too", -1e20);
  submit("c");
  start();
  EXPECT_TRUE(accepted("c", "Valid"));
  EXPECT_TRUE(accepted("wide-too", "InvalidTemplate"));
  run_all();
  wait_for("Running", "a");
  EXPECT_EQ(pods().size(), 12U);
}

TEST_F(OperatorTest, TrainsOnNumbersOfAnySize) {
  const Json job = Json::parse(R"({"apiVersion": "muster.dev/v1alpha1", "kind": "TrainingJob",
    "metadata": {"name": "steep"}, "spec": {"replicaSpecs": {"chief": {"replicas": 1}},
      "storage": {"volume": {"persistentVolumeClaim": {"claimName": "shared"}}},
      "training": {"model": {"name": "linear-regression"}, "batchSize": 10, "epochs": 1,
        "optimizer": {"name": "sgd", "learningRate": 0.01},
        "data": {"train": {"syntheticLinear": {"samples": 100, "slope": 1e20}}}}}})");
  run({"create", "-f", "-"}, job.dump());
  ASSERT_TRUE(eventually([&] { return pods().size() == 1; }));
  EXPECT_THAT(pods()[0]["metadata"]["annotations"].dump(), HasSubstr("1e+20"));
}

TEST_F(OperatorTest, ItsTrainersPassTheRestrictedStandard) {
  run({"label", "namespace", "default", "pod-security.kubernetes.io/enforce=restricted"});
  const Json job = Json::parse(R"({"apiVersion": "muster.dev/v1alpha1", "kind": "TrainingJob",
    "metadata": {"name": "strict"}, "spec": {
      "replicaSpecs": {"ps": {}, "chief": {}, "worker": {"replicas": 2}, "evaluator": {}},
      "schedulingPolicy": {"maxUnavailable": 1},
      "storage": {"volume": {"persistentVolumeClaim": {"claimName": "shared"}}},
      "training": {"model": {"name": "mnist-mlp"}, "epochs": 1, "data": {
        "train": {"syntheticClasses": {"samples": 60, "classes": 10, "shape": [784]}},
        "test": {"syntheticClasses": {"samples": 60, "classes": 10, "shape": [784]}}}}}})");
  run({"create", "-f", "-"}, job.dump());
  ASSERT_TRUE(eventually([&] { return pods().size() == 5; }));
  for (const Json& pod : pods()) EXPECT_EQ(pod["status"]["qosClass"], "Burstable");
  // The server keeps both as they were sent, so that nothing looks changed later.
  // kubectl sorts the fields of an object.
  const auto spec_of = [&](const std::string& kind, const std::string& name) {
    return nlohmann::json::parse(run({"get", kind, name, "-o", "jsonpath={.spec}"}));
  };
  const nlohmann::json policy = spec_of("networkpolicy", "strict-replicas");
  EXPECT_EQ(policy["ingress"][0]["ports"],
            nlohmann::json::parse(R"([{"protocol": "TCP", "port": 2222, "endPort": 2254}])"));
  EXPECT_EQ(policy["ingress"][1]["from"], nlohmann::json::parse(kHttpPeers));
  EXPECT_EQ(spec_of("poddisruptionbudget", "strict")["minAvailable"], 4);

  submit("loose");  // of an image of one's own, whose template says nothing of security
  EXPECT_TRUE(eventually([&] {
    return run({"get", "tj", "loose", "-o",
                "jsonpath={.status.conditions[?(@.type=='Accepted')].reason}"}) ==
           "InvalidTemplate";
  }));
  EXPECT_EQ(pods().size(), 5U);
}

TEST_F(OperatorTest, AnotherOneGoesOnWhenItIsKilled) {
  submit("mnist");
  ASSERT_TRUE(eventually([&] { return pods().size() == 4; }));
  run_all();
  wait_for("Running", "mnist");
  operator_->signal(SIGKILL);
  operator_->wait();
  end("chief", 0);
  run({"delete", "pod", "-l", "muster.dev/role=chief", "--wait=false"});
  start();
  wait_for("SuccessCriteriaMet", "mnist");
  EXPECT_TRUE(eventually([&] { return pods("muster.dev/role=chief").empty(); }));
}

TEST_F(OperatorTest, ReleasesPodsOnceNoOperatorActs) {
  submit("mnist");
  ASSERT_TRUE(eventually([&] { return pods().size() == 4; }));
  EXPECT_EQ(release_pods("2"), 69) << "an operator leads";
  for (const Json& pod : pods()) EXPECT_TRUE(pod["metadata"].contains("finalizers"));
  EXPECT_EQ(run({"get", "deployment", kName, "-n", kNamespace, "-o", "jsonpath={.spec.replicas}"}),
            "0");

  operator_->signal(SIGKILL);
  operator_->wait();
  EXPECT_EQ(release_pods("60"), 0);
  EXPECT_EQ(pods().size(), 4U);
  run({"delete", "pods", "--all", "--grace-period=0", "--force", "--timeout=60s"});
  EXPECT_TRUE(pods().empty());
  EXPECT_EQ(release_pods("60"), 0) << "again, with nothing to do";
}

TEST_F(OperatorTest, GivesUpItsLeaseWhenAskedToLeave) {
  const std::vector<std::string> get_holder = {
      "get", "lease", kName, "-n", kNamespace, "-o", "jsonpath={.spec.holderIdentity}"};
  ASSERT_TRUE(eventually([&] {
    const ApiServer::Output holder = server_.kubectl(get_holder);
    return holder.code == 0 && holder.text != "";
  }));
  operator_->signal(SIGTERM);
  EXPECT_EQ(operator_->wait(), 0);
  EXPECT_EQ(run(get_holder), "");
}

}  // namespace

}  // namespace muster::integration
