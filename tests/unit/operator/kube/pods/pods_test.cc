#include "operator/kube/pods/pods.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "common/documents/json.h"
#include "operator/kube/pods/names.h"

namespace muster::kube {
namespace {

using api::Role;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

const PodSettings kSettings = {"muster/trainer:1", "muster/trainer-cuda:1", "IfNotPresent",
                               "cluster.local"};

api::TrainingJob trained() {
  api::TrainingJob job;
  job.name = "mnist";
  job.name_space = "lab";
  job.uid = "3f6c";
  job.training = Json{{"epochs", 2}};
  job.replicas[Role::ps] = {};
  job.replicas[Role::chief] = {};
  job.replicas[Role::worker].replicas = 2;
  job.replicas[Role::evaluator] = {};
  return job;
}

api::TrainingJob imaged(const char* pod_template) {
  api::TrainingJob job = trained();
  job.training = nullptr;
  for (auto& [role, spec] : job.replicas) spec.pod_template = Json::parse(pod_template);
  return job;
}

api::TrainingJob with_template(const char* pod_template) {
  api::TrainingJob job = trained();
  job.replicas[Role::worker].pod_template = Json::parse(pod_template);
  return job;
}

Json pod(const api::TrainingJob& job, Role role = Role::worker, int index = 1, int attempt = 0) {
  return pod_of(job, {role, index, /*run=*/3, attempt}, kSettings);
}

const Json& container_named(const Json& pod, const char* name) {
  static const Json none;
  for (const Json& container : pod["spec"]["containers"]) {
    if (container["name"] == name) return container;
  }
  ADD_FAILURE() << "no container " << name << " in " << pod["spec"]["containers"];
  return none;
}

// The value of a variable; "(unset)" if it is not there, "(twice)" if it is there more than once.
std::string variable(const Json& pod, const std::string& name, const char* container = "trainer") {
  std::string value = "(unset)";
  for (const Json& entry : member(container_named(pod, container), "env")) {
    if (entry["name"] != name) continue;
    value = value == "(unset)" ? string_or(entry, "value", "(from elsewhere)") : "(twice)";
  }
  return value;
}

TEST(Pods, AreNamedByJobRoleIndexAndAttempt) {
  const api::TrainingJob job = trained();
  EXPECT_THAT(pod_name(job, Role::worker, 1, 0), MatchesRegex("mnist-worker-1-[a-z2-9]{5}"));
  EXPECT_EQ(pod_name(job, Role::worker, 1, 0), pod_name(job, Role::worker, 1, 0));
  EXPECT_NE(pod_name(job, Role::worker, 1, 0), pod_name(job, Role::worker, 1, 1));
  api::TrainingJob again = job;
  again.uid = "another";
  EXPECT_NE(pod_name(job, Role::worker, 1, 0), pod_name(again, Role::worker, 1, 0));
}

TEST(Pods, HaveNamesThatFitALabelOfDns) {
  api::TrainingJob job = trained();
  job.name = std::string(40, 'a');
  EXPECT_LE(pod_name(job, Role::evaluator, 9999, 100000).size(), 63u);
}

TEST(Pods, FindTheKeyPairOfTheirJob) {
  api::TrainingJob job = trained();
  const Json without = pod(job);
  EXPECT_EQ(variable(without, "MUSTER_TLS"), "(unset)");
  job.status.security = api::Security{};
  EXPECT_EQ(pod(job), without) << "they believe everybody";
  job.status.security->keys = "mnist-tls-1";
  const Json made = pod(job);
  const Json& container = container_named(made, "trainer");
  EXPECT_EQ(variable(made, "MUSTER_TLS"), "/etc/muster-tls");
  EXPECT_THAT(made["spec"]["volumes"],
              Contains(Json({{"name", "muster-tls"},
                             {"secret", {{"secretName", "mnist-tls-1"}, {"defaultMode", 0444}}}})));
  EXPECT_THAT(container["volumeMounts"],
              Contains(Json(
                  {{"name", "muster-tls"}, {"mountPath", "/etc/muster-tls"}, {"readOnly", true}})));
  api::TrainingJob other = job;
  other.status.security->keys = "mnist-tls-2";
  EXPECT_EQ(template_key(made), template_key(pod(other))) << "one dry run is enough for both";
}

TEST(Pods, TheSecretIsTheJobs) {
  api::TrainingJob job = trained();
  job.status.security = api::Security{"mnist-tls-1", 0};
  const Json secret = secret_of(job, {"key", "certificate"});
  EXPECT_EQ(secret["metadata"]["name"], "mnist-tls-1");
  EXPECT_EQ(secret["metadata"]["ownerReferences"][0]["uid"], job.uid);
  EXPECT_EQ(secret["immutable"], true);
  EXPECT_EQ(secret["stringData"], Json({{"tls.key", "key"}, {"tls.crt", "certificate"}}));
}

api::TrainingJob on_gpus(const char* pod_template = "{}") {
  api::TrainingJob job = with_template(pod_template);
  job.training["device"] = "cuda";
  return job;
}

TEST(Pods, GetGpusWhereTheyComputeOnThem) {
  api::TrainingJob job = on_gpus();
  const Json made = pod(job);
  const Json& container = container_named(made, "trainer");
  EXPECT_EQ(container["image"], "muster/trainer-cuda:1");
  EXPECT_EQ(container["resources"]["limits"]["nvidia.com/gpu"], 1);
  EXPECT_THAT(made["spec"]["tolerations"],
              Contains(Json(
                  {{"key", "nvidia.com/gpu"}, {"operator", "Exists"}, {"effect", "NoSchedule"}})));
  EXPECT_THAT(made["spec"]["volumes"],
              Contains(Json({{"name", "muster-shm"}, {"emptyDir", {{"medium", "Memory"}}}})));
  EXPECT_THAT(container["volumeMounts"],
              Contains(Json({{"name", "muster-shm"}, {"mountPath", "/dev/shm"}})));
  job.training["devices"] = 4;
  EXPECT_EQ(container_named(pod(job), "trainer")["resources"]["limits"]["nvidia.com/gpu"], 4);
  job.replicas[api::Role::evaluator] = job.replicas.at(api::Role::worker);
  const Json evaluator = pod(job, api::Role::evaluator);
  EXPECT_EQ(container_named(evaluator, "trainer")["resources"]["limits"]["nvidia.com/gpu"], 1);
}

TEST(Pods, OfAPsGetOneGpuWhereItKeepsItsShardsThere) {
  api::TrainingJob job = on_gpus();
  job.replicas[api::Role::ps] = job.replicas.at(api::Role::worker);
  const auto limits = [&] {
    const Json made = pod(job, api::Role::ps);
    return container_named(made, "trainer")["resources"].value("limits", Json());
  };
  EXPECT_EQ(limits(), Json());
  job.training["devices"] = 4;
  job.training["psDevice"] = "cuda";
  EXPECT_EQ(limits(), Json({{"nvidia.com/gpu", 1}}));
  job.training["device"] = "cpu";
  EXPECT_EQ(limits(), Json({{"nvidia.com/gpu", 1}}));
  EXPECT_EQ(container_named(pod(job, api::Role::ps), "trainer")["image"], "muster/trainer-cuda:1");
}

api::TrainingJob avoiding(const char* affinity) {
  api::TrainingJob job =
      with_template((R"({"spec": {"affinity": )" + std::string(affinity) + "}}").c_str());
  job.status.records.resize(2);
  job.status.records[0].avoided_nodes = {"node-b"};
  job.status.records[1].avoided_nodes = {"node-a", "node-b"};
  return job;
}

TEST(Pods, PreferOtherNodesThanThoseOnWhichAReplicaLostAGpu) {
  const Json wish = Json::parse(R"({"weight": 100, "preference": {"matchFields": [
      {"key": "metadata.name", "operator": "NotIn", "values": ["node-a"]},
      {"key": "metadata.name", "operator": "NotIn", "values": ["node-b"]}]}})");
  const char* field = "preferredDuringSchedulingIgnoredDuringExecution";
  for (const char* affinity :
       {"null", "{}", R"({"nodeAffinity": null})",
        R"({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": null}})"}) {
    const api::TrainingJob job = avoiding(affinity);
    EXPECT_EQ(elsewhere(job, pod(job))["spec"]["affinity"]["nodeAffinity"][field],
              Json::array({wish}))
        << affinity;
  }
  const api::TrainingJob job = avoiding(
      R"({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}})");
  EXPECT_EQ(elsewhere(job, pod(job))["spec"]["affinity"]["nodeAffinity"][field],
            Json::array({Json{{"weight", 1}}, wish}));
  EXPECT_EQ(elsewhere(trained(), pod(trained())), pod(trained()));
}

TEST(Pods, LeaveAnAffinityOfAWrongTypeToTheApiServer) {
  for (const char* affinity :
       {"7", "[]", R"({"nodeAffinity": "x"})",
        R"({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": {}}})"}) {
    const api::TrainingJob job = avoiding(affinity);
    EXPECT_EQ(elsewhere(job, pod(job)), pod(job)) << affinity;
  }
}

TEST(Pods, GetNoGpusWithoutBeingAskedTo) {
  const Json of_ps = pod(on_gpus(), Role::ps, 0);
  EXPECT_EQ(container_named(of_ps, "trainer")["image"], "muster/trainer:1");
  for (const char* device : {"auto", "cpu"}) {
    api::TrainingJob job = trained();
    const Json before = pod(job);
    job.training["device"] = device;
    EXPECT_EQ(pod(job)["spec"], before["spec"]);
  }
}

TEST(Pods, LeaveToATemplateWhichGpusItAsksFor) {
  const api::TrainingJob job = on_gpus(R"({"spec": {
      "tolerations": [{"key": "nvidia.com/gpu", "operator": "Equal", "value": "shared"}],
      "volumes": [{"name": "fast", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}],
      "containers": [{"name": "trainer", "image": "mine:1",
        "resources": {"limits": {"nvidia.com/mig-1g.10gb": 1, "cpu": 2}},
        "volumeMounts": [{"name": "fast", "mountPath": "/dev/shm"}]}]}})");
  const Json made = pod(job);
  const Json& container = container_named(made, "trainer");
  EXPECT_EQ(container["image"], "mine:1");
  EXPECT_EQ(container["resources"]["limits"], Json({{"nvidia.com/mig-1g.10gb", 1}, {"cpu", 2}}));
  EXPECT_THAT(container["volumeMounts"],
              AllOf(Contains(Json({{"name", "fast"}, {"mountPath", "/dev/shm"}})),
                    Not(Contains(Json({{"name", "muster-shm"}, {"mountPath", "/dev/shm"}})))));
  EXPECT_THAT(made["spec"]["tolerations"],
              Not(Contains(Json(
                  {{"key", "nvidia.com/gpu"}, {"operator", "Exists"}, {"effect", "NoSchedule"}}))));
}

TEST(Pods, SayWhichReplicaTheyAre) {
  const Json made = pod(trained(), Role::worker, 1, 2);
  const Json& labels = made["metadata"]["labels"];
  EXPECT_EQ(labels[kJobLabel], "mnist");
  EXPECT_EQ(labels[kJobUidLabel], "3f6c");
  EXPECT_EQ(labels[kRoleLabel], "worker");
  EXPECT_EQ(labels[kIndexLabel], "1");
  EXPECT_EQ(labels[kAttemptLabel], "2");
  EXPECT_EQ(labels[kRunLabel], "3");
  EXPECT_EQ(labels[kCurrentLabel], "true");
  EXPECT_EQ(labels[kContainerLabel], "trainer");
  EXPECT_EQ(made["metadata"]["namespace"], "lab");
  EXPECT_EQ(made["metadata"]["finalizers"], Json::array({"muster.dev/tracking"}));
  EXPECT_EQ(made["spec"]["hostname"], "mnist-worker-1");
  EXPECT_EQ(made["spec"]["subdomain"], "mnist");
  const Json& owner = made["metadata"]["ownerReferences"][0];
  EXPECT_EQ(owner["kind"], "TrainingJob");
  EXPECT_EQ(owner["uid"], "3f6c");
  EXPECT_EQ(owner["controller"], true);
}

TEST(Pods, OfAMasterSaySo) {
  api::TrainingJob job = trained();
  job.says_master = true;
  const Json made = pod(job, Role::chief, 0);
  EXPECT_EQ(made["metadata"]["labels"][kRoleLabel], "master");
  EXPECT_EQ(made["spec"]["hostname"], "mnist-master-0");
  EXPECT_THAT(variable(made, "TF_CONFIG"), HasSubstr(R"("master":["mnist-master-0.mnist.lab.svc)"));
}

TEST(Pods, GetTheirEnvironment) {
  const Json made = pod(trained(), Role::worker, 1, 2);
  const Json tf_config = Json::parse(variable(made, "TF_CONFIG"));
  EXPECT_EQ(tf_config["cluster"]["worker"],
            Json::array({"mnist-worker-0.mnist.lab.svc.cluster.local:2222",
                         "mnist-worker-1.mnist.lab.svc.cluster.local:2222"}));
  EXPECT_FALSE(tf_config["cluster"].contains("evaluator"));
  EXPECT_EQ(tf_config["task"], Json::parse(R"({"type": "worker", "index": 1})"));
  EXPECT_EQ(variable(made, "MUSTER_JOB"), "mnist");
  EXPECT_EQ(variable(made, "MUSTER_JOB_UID"), "3f6c");
  EXPECT_EQ(variable(made, "MUSTER_ATTEMPT"), "2");
  EXPECT_EQ(variable(made, "MUSTER_STORAGE"), "/muster/lab-mnist");
  EXPECT_EQ(variable(made, "MUSTER_NAMESPACE"), "lab");
  EXPECT_EQ(variable(made, "MUSTER_ADOPT"), "(unset)");
  EXPECT_EQ(variable(made, "MUSTER_TRAINING"), "/etc/muster/training.yaml");
  EXPECT_EQ(variable(made, "MUSTER_HTTP_ADDRESS"), "[::]:8080");
  EXPECT_EQ(variable(made, "MUSTER_RESTARTS_IN_PLACE"), "3");
  const Json& list = made["spec"]["containers"][0]["env"];
  EXPECT_THAT(list, Contains(Json{{"name", "MUSTER_POD_IP"},
                                  {"valueFrom", {{"fieldRef", {{"fieldPath", "status.podIP"}}}}}}));
}

TEST(Pods, WithoutADomainHaveAddressesThatTheResolverCompletes) {
  EXPECT_EQ(peer_address(trained(), Role::ps, 0, ""), "mnist-ps-0.mnist.lab.svc:2222");
}

TEST(Pods, OfTheTrainerAreRestricted) {
  const Json spec = pod(trained())["spec"];
  EXPECT_EQ(spec["restartPolicy"], "Never");
  EXPECT_EQ(spec["terminationGracePeriodSeconds"], 120);
  EXPECT_EQ(spec["automountServiceAccountToken"], false);
  EXPECT_EQ(spec["securityContext"]["runAsNonRoot"], true);
  EXPECT_EQ(spec["securityContext"]["fsGroup"], 65532);
  EXPECT_EQ(spec["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
  const Json& container = spec["containers"][0];
  EXPECT_EQ(container["image"], "muster/trainer:1");
  EXPECT_EQ(container["imagePullPolicy"], "IfNotPresent");
  EXPECT_EQ(container["securityContext"]["allowPrivilegeEscalation"], false);
  EXPECT_EQ(container["securityContext"]["readOnlyRootFilesystem"], true);
  EXPECT_EQ(container["securityContext"]["capabilities"]["drop"], Json::array({"ALL"}));
  EXPECT_EQ(container["readinessProbe"]["httpGet"]["path"], "/healthz");
  EXPECT_EQ(container["ports"][0]["containerPort"], 2222);
  for (const Json& toleration : spec["tolerations"]) {
    EXPECT_EQ(toleration["tolerationSeconds"], 30) << toleration;
  }
  EXPECT_EQ(spec["tolerations"].size(), 2u);
}

TEST(Pods, GetTheTrainingBlockAsAFileOfTheirAnnotation) {
  const Json made = pod(trained());
  EXPECT_EQ(made["metadata"]["annotations"]["muster.dev/training"], R"({"epochs":2})");
  const Json& volumes = made["spec"]["volumes"];
  const auto projected = std::ranges::find_if(
      volumes, [](const Json& volume) { return volume.contains("downwardAPI"); });
  ASSERT_NE(projected, volumes.end());
  EXPECT_EQ((*projected)["downwardAPI"]["items"][0]["fieldRef"]["fieldPath"],
            "metadata.annotations['muster.dev/training']");
}

Json mounted_at(const Json& pod, const std::string& path) {
  for (const Json& mount : member(pod["spec"]["containers"][0], "volumeMounts")) {
    if (mount["mountPath"] != path) continue;
    for (const Json& volume : pod["spec"]["volumes"]) {
      if (volume["name"] == mount["name"]) return volume;
    }
  }
  return nullptr;
}

TEST(Pods, MountTheJobsStorage) {
  api::TrainingJob job = trained();
  job.storage_mount_path = "/shared";
  job.storage_volume = Json::parse(R"({"persistentVolumeClaim": {"claimName": "disk"}})");
  EXPECT_EQ(mounted_at(pod(job), "/shared")["persistentVolumeClaim"]["claimName"], "disk");
  EXPECT_EQ(variable(pod(job), "MUSTER_STORAGE"), "/shared/lab-mnist");
  EXPECT_TRUE(mounted_at(pod(trained()), "/muster").contains("emptyDir"));
}

// The path of each file of the volume that has training.yaml.
std::vector<std::string> projected_files(const Json& pod) {
  std::vector<std::string> paths;
  const Json volume = mounted_at(pod, "/etc/muster");
  for (const Json& item : volume["downwardAPI"]["items"]) paths.push_back(item["path"]);
  return paths;
}

TEST(Pods, OfALeaderWatchAFileOfTheirAnnotationForRequests) {
  api::TrainingJob job = trained();
  job.storage_volume = Json::parse(R"({"persistentVolumeClaim": {"claimName": "disk"}})");
  job.checkpoint_request = "now";
  const Json leader = pod(job, Role::chief, 0);
  EXPECT_EQ(variable(leader, "MUSTER_CHECKPOINT_REQUEST"), "/etc/muster/checkpoint-request");
  EXPECT_EQ(leader["metadata"]["annotations"]["muster.dev/checkpoint"], "now");
  EXPECT_THAT(projected_files(leader), testing::ElementsAre("training.yaml", "checkpoint-request"));
  EXPECT_EQ(mounted_at(leader, "/etc/muster")["downwardAPI"]["items"][1]["fieldRef"]["fieldPath"],
            "metadata.annotations['muster.dev/checkpoint']");
  for (const Role role : {Role::ps, Role::worker, Role::evaluator}) {
    const Json other = pod(job, role, 0);
    EXPECT_EQ(variable(other, "MUSTER_CHECKPOINT_REQUEST"), "(unset)");
    EXPECT_FALSE(other["metadata"]["annotations"].contains("muster.dev/checkpoint"));
  }
  job.replicas.erase(Role::chief);
  EXPECT_NE(variable(pod(job, Role::worker, 0), "MUSTER_CHECKPOINT_REQUEST"), "(unset)");
  EXPECT_EQ(template_key(pod(job, Role::worker, 0)), template_key(pod(job, Role::worker, 1)));
  job.storage_volume = nullptr;
  const Json forgetful = pod(job, Role::worker, 0);
  EXPECT_EQ(variable(forgetful, "MUSTER_CHECKPOINT_REQUEST"), "(unset)");
  EXPECT_THAT(projected_files(forgetful), testing::ElementsAre("training.yaml"));
}

TEST(Pods, TrainInAFolderOfTheJobsOwn) {
  api::TrainingJob job = trained();
  job.storage_adopt = "lab/before";
  EXPECT_EQ(variable(pod(job), "MUSTER_ADOPT"), "lab/before");
  // A job that is older than the choice of a folder has conditions and no folder.
  job.status.conditions.push_back({"Accepted", true, "Valid", "", {}});
  EXPECT_EQ(variable(pod(job), "MUSTER_STORAGE"), "/muster");
  job.status.storage_folder = "lab-mnist";
  EXPECT_EQ(variable(pod(job), "MUSTER_STORAGE"), "/muster/lab-mnist");
  job.storage_folder = "runs/7";
  EXPECT_EQ(variable(pod(job), "MUSTER_STORAGE"), "/muster/runs/7");
  job.storage_folder = ".";
  EXPECT_EQ(variable(pod(job), "MUSTER_STORAGE"), "/muster");
}

constexpr const char* kImage =
    R"({"spec": {"containers": [{"name": "tensorflow", "image": "tf"}, {"name": "log"}]}})";

TEST(Pods, OfAnyImageAreLeftAsTheyAre) {
  const Json made = pod(imaged(kImage));
  const Json& container = container_named(made, "tensorflow");
  EXPECT_EQ(made["metadata"]["labels"][kContainerLabel], "tensorflow");
  EXPECT_EQ(container["image"], "tf");
  EXPECT_FALSE(container.contains("securityContext"));
  EXPECT_FALSE(container.contains("readinessProbe"));
  EXPECT_FALSE(made["spec"].contains("securityContext"));
  EXPECT_FALSE(made["metadata"]["annotations"].contains(kTrainingAnnotation));
  EXPECT_TRUE(mounted_at(made, "/muster").is_null());
  EXPECT_THAT(variable(made, "TF_CONFIG", "tensorflow"), HasSubstr("mnist-worker-0"));
  EXPECT_EQ(variable(made, "MUSTER_STORAGE", "tensorflow"), "/muster");
  EXPECT_EQ(variable(made, "MUSTER_RESTARTS_IN_PLACE", "tensorflow"), "(unset)");
  EXPECT_EQ(variable(made, "TF_CONFIG", "log"), "(unset)") << "a sidecar";
}

TEST(Pods, AreOfTheUsersTemplateOverTheDefault) {
  const Json made = pod(with_template(R"({
    "metadata": {"labels": {"team": "vision", "muster.dev/job": "other"},
                 "annotations": {"note": "x"}},
    "spec": {"nodeSelector": {"gpu": "yes"}, "hostname": "mine",
             "containers": [{"name": "sidecar", "image": "s"},
                            {"name": "trainer", "resources": {"limits": {"cpu": "2"}},
                             "env": [{"name": "OMP_NUM_THREADS", "value": "2"},
                                     {"name": "MUSTER_ROLE", "value": "chief"}]}]}})"));
  const Json& labels = made["metadata"]["labels"];
  EXPECT_EQ(labels["team"], "vision");
  EXPECT_EQ(labels[kJobLabel], "mnist");
  EXPECT_EQ(made["metadata"]["annotations"]["note"], "x");
  EXPECT_EQ(made["spec"]["nodeSelector"]["gpu"], "yes");
  EXPECT_EQ(made["spec"]["hostname"], "mnist-worker-1");
  EXPECT_EQ(container_named(made, "trainer")["image"], "muster/trainer:1");
  EXPECT_EQ(container_named(made, "trainer")["resources"]["limits"]["cpu"], "2");
  EXPECT_EQ(container_named(made, "sidecar")["image"], "s");
  EXPECT_EQ(variable(made, "OMP_NUM_THREADS"), "2");
  EXPECT_EQ(variable(made, "MUSTER_ROLE"), "worker");
}

TEST(Pods, ShowTheEndOfTheLogOfAnInitContainerThatFails) {
  const Json made = pod(with_template(R"({"spec": {"initContainers": [
      {"name": "fetch"}, {"name": "own", "terminationMessagePolicy": "File"}]}})"));
  const Json& made_first = made["spec"]["initContainers"];
  EXPECT_EQ(made_first[0]["terminationMessagePolicy"], "FallbackToLogsOnError");
  EXPECT_EQ(made_first[1]["terminationMessagePolicy"], "File");
}

TEST(Pods, KeepTheNameOfAnOnlyContainer) {
  const Json made = pod(with_template(R"({"spec": {"containers": [{"name": "main"}]}})"));
  ASSERT_EQ(made["spec"]["containers"].size(), 1u);
  EXPECT_EQ(made["spec"]["containers"][0]["name"], "main");
  EXPECT_EQ(made["spec"]["containers"][0]["image"], "muster/trainer:1");
  EXPECT_EQ(made["metadata"]["labels"][kContainerLabel], "main");
}

TEST(Pods, OfACommandOfTheUsersOwnAreNotProbed) {
  const Json made = pod(with_template(
      R"({"spec": {"containers": [{"name": "trainer", "command": ["python", "t.py"]}]}})"));
  EXPECT_FALSE(made["spec"]["containers"][0].contains("readinessProbe"));
}

TEST(Pods, AreRestartedByTheKubeletOnlyWhereTheTemplateAsksForIt) {
  const auto policy = [](const char* asked, api::RestartPolicy of_role) {
    api::TrainingJob job =
        with_template((std::string(R"({"spec": {"restartPolicy": ")") + asked + "\"}}").c_str());
    job.replicas[Role::worker].restart_policy = of_role;
    return pod(job)["spec"]["restartPolicy"];
  };
  EXPECT_EQ(policy("OnFailure", api::RestartPolicy::on_failure), "OnFailure");
  EXPECT_EQ(policy("Always", api::RestartPolicy::on_failure), "OnFailure");
  EXPECT_EQ(policy("OnFailure", api::RestartPolicy::never), "Never");
  EXPECT_EQ(policy("Never", api::RestartPolicy::on_failure), "Never");
}

// They would be BestEffort, the first that a node without memory throws out.
TEST(Pods, RequestSomethingWhereTheTemplateDoesNotSayHowMuch) {
  const Json least = {{"requests", {{"cpu", "100m"}, {"memory", "256Mi"}}}};
  EXPECT_EQ(container_named(pod(trained()), "trainer")["resources"], least);
  EXPECT_EQ(container_named(pod(imaged(kImage)), "tensorflow")["resources"], least);
  EXPECT_FALSE(container_named(pod(imaged(kImage)), "log").contains("resources")) << "a sidecar";
  const Json of_gpus = container_named(pod(on_gpus()), "trainer")["resources"];
  EXPECT_EQ(of_gpus["requests"], least["requests"]);
  EXPECT_EQ(of_gpus["limits"], Json({{"nvidia.com/gpu", 1}})) << "no other limit";
}

TEST(Pods, RequestWhatTheTemplateSays) {
  for (const char* resources :
       {R"({"requests": {"cpu": "2"}})", R"({"requests": {"memory": "1Gi"}})",
        R"({"limits": {"cpu": "50m"}})", R"({"limits": {"memory": "1Gi"}})"}) {
    const std::string text = std::string(R"({"spec": {"containers": [{"name": "trainer",
        "resources": )") + resources +
                             "}]}}";
    EXPECT_EQ(container_named(pod(with_template(text.c_str())), "trainer")["resources"],
              Json::parse(resources));
  }
  const Json of_pod = pod(with_template(R"({"spec": {"resources": {"limits": {"cpu": "50m"}}}})"));
  EXPECT_FALSE(container_named(of_pod, "trainer").contains("resources"));
}

TEST(Pods, MayBeOfAllowedServiceAccountsOnly) {
  const auto account = [](const char* field, const char* name) {
    return Json{{"spec", {{field, name}}}};
  };
  PodSettings any = kSettings, some = kSettings;
  some.allowed_accounts = {"loader", "trainer"};
  EXPECT_EQ(refusal_of(account("serviceAccountName", "admin"), any), std::nullopt);
  EXPECT_EQ(refusal_of(pod(trained()), some), std::nullopt) << "it names none";
  for (const char* field : {"serviceAccountName", "serviceAccount"}) {
    for (const char* name : {"trainer", "loader", "default", ""})
      EXPECT_EQ(refusal_of(account(field, name), some), std::nullopt) << name;
    EXPECT_EQ(refusal_of(account(field, "admin"), some),
              "spec.serviceAccountName of the template: expected a service account that this "
              "operator allows (default, loader, trainer), found \"admin\"")
        << field;
  }
  Json both = account("serviceAccountName", "trainer");
  both["spec"]["serviceAccount"] = "admin";
  EXPECT_EQ(refusal_of(both, some), std::nullopt) << "the newer name wins";
}

api::TrainingJob of_many(int workers, api::TrainingJob job) {
  job.name = std::string(40, 'a');
  job.name_space = std::string(63, 'b');
  job.replicas[Role::worker].replicas = workers;
  return job;
}

TEST(Pods, GetATfConfigThatIsTooLongForAVariableAsAFile) {
  const Json few = pod(of_many(500, trained()));
  EXPECT_NE(variable(few, "TF_CONFIG"), "(unset)");
  EXPECT_EQ(variable(few, "MUSTER_TF_CONFIG"), "(unset)");
  EXPECT_FALSE(few["metadata"]["annotations"].contains(kTfConfigAnnotation));
  const Json many = pod(of_many(1000, trained()));
  EXPECT_EQ(variable(many, "TF_CONFIG"), "(unset)");
  EXPECT_EQ(variable(many, "MUSTER_TF_CONFIG"), "/etc/muster/tf_config.json");
  EXPECT_EQ(refusal_of(many, kSettings), std::nullopt);
  const Json config =
      Json::parse(many["metadata"]["annotations"][kTfConfigAnnotation].get<std::string>());
  EXPECT_EQ(config["cluster"]["worker"].size(), 1000u);
  EXPECT_EQ(config["task"]["index"], 1);
  const Json item = {{"path", "tf_config.json"},
                     {"fieldRef", {{"fieldPath", "metadata.annotations['muster.dev/tf-config']"}}}};
  EXPECT_THAT(mounted_at(many, "/etc/muster")["downwardAPI"]["items"], Contains(item));
}

TEST(Pods, OfAProgramOfOnesOwnAreRefusedWithATfConfigThatIsTooLong) {
  EXPECT_EQ(refusal_of(pod(of_many(500, imaged(kImage))), kSettings), std::nullopt);
  const auto why = refusal_of(pod(of_many(1000, imaged(kImage))), kSettings);
  ASSERT_TRUE(why);
  EXPECT_THAT(*why, AllOf(HasSubstr("the variable TF_CONFIG of container tensorflow: expected at "
                                    "most 131071 bytes"),
                          HasSubstr("use fewer, or shorter names")));
}

TEST(Pods, OfAJobOfOneReplicaHaveNoTfConfig) {
  api::TrainingJob job = trained();
  job.replicas = {{Role::chief, {}}};
  EXPECT_EQ(variable(pod(job, Role::chief, 0), "TF_CONFIG"), "(unset)");
}

TEST(Pods, OfOneTemplateShareAKey) {
  const api::TrainingJob job = trained();
  api::TrainingJob other = trained();
  other.name = "other";
  other.uid = "77";
  other.training["epochs"] = 9;
  EXPECT_EQ(template_key(pod(job)), template_key(pod(other, Role::ps, 0, 4)));
  EXPECT_NE(template_key(pod(job)), template_key(pod(imaged(kImage))));
  EXPECT_NE(template_key(pod(job)),
            template_key(pod(with_template(R"({"spec": {"hostNetwork": true}})"))));
  other.name_space = "elsewhere";
  EXPECT_NE(template_key(pod(job)), template_key(pod(other))) << "other admission rules";
}

TEST(Gang, PutsPodsIntoTheGroupOfItsScheduler) {
  api::TrainingJob job = trained();
  EXPECT_TRUE(pod_group_of(job).is_null());
  job.scheduling_policy =
      Json::parse(R"({"gang": "volcano", "queue": "night", "priorityClass": "high"})");
  Json made = pod(job);
  EXPECT_EQ(made["metadata"]["annotations"]["scheduling.k8s.io/group-name"], "mnist");
  EXPECT_EQ(made["spec"]["schedulerName"], "volcano");
  EXPECT_EQ(made["spec"]["priorityClassName"], "high");
  Json group = pod_group_of(job);
  EXPECT_EQ(group["apiVersion"], "scheduling.volcano.sh/v1beta1");
  EXPECT_EQ(group["spec"], Json::parse(R"({"minMember": 5, "queue": "night",
                                            "priorityClassName": "high"})"));
  job.scheduling_policy =
      Json::parse(R"({"gang": "scheduler-plugins", "minAvailable": 3, "timeout": 60})");
  made = pod(job);
  EXPECT_EQ(made["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"], "mnist");
  EXPECT_EQ(made["spec"]["schedulerName"], "scheduler-plugins-scheduler");
  group = pod_group_of(job);
  EXPECT_EQ(group["apiVersion"], "scheduling.x-k8s.io/v1alpha1");
  EXPECT_EQ(group["spec"], Json::parse(R"({"minMember": 3, "scheduleTimeoutSeconds": 60})"));
  EXPECT_EQ(group["metadata"]["ownerReferences"][0]["uid"], "3f6c");
}

TEST(Gang, OfAnElasticJobIsWhatCanTrain) {
  api::TrainingJob job = trained();
  job.replicas.erase(Role::ps);
  job.elastic = api::Elastic{1, 8};
  job.scheduling_policy = Json::parse(R"({"gang": "volcano"})");
  EXPECT_EQ(pod_group_of(job)["spec"]["minMember"], 2);
  job.replicas.at(Role::worker).replicas = 7;
  EXPECT_EQ(pod_group_of(job)["spec"]["minMember"], 2);
  job.scheduling_policy["minAvailable"] = 3;
  EXPECT_EQ(pod_group_of(job)["spec"]["minMember"], 3);
}

TEST(Service, GivesEveryCurrentReplicaAnAddressReadyOrNot) {
  const Json service = services_of(trained()).at(0);
  EXPECT_EQ(service["metadata"]["name"], "mnist");
  EXPECT_EQ(service["spec"]["clusterIP"], "None");
  EXPECT_EQ(service["spec"]["publishNotReadyAddresses"], true);
  const Json labels = pod(trained())["metadata"]["labels"];
  for (const auto& [label, value] : service["spec"]["selector"].items()) {
    EXPECT_EQ(labels[label], value) << label;
  }
  EXPECT_EQ(service["spec"]["selector"][kCurrentLabel], "true");
  EXPECT_EQ(service["spec"]["selector"][kJobUidLabel], "3f6c");
}

}  // namespace
}  // namespace muster::kube
