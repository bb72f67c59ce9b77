#include "operator/kube/pods/observe.h"

#include <gtest/gtest.h>

#include "common/job/termination_message.h"
#include "operator/api/status.h"
#include "operator/kube/pods/names.h"
#include "tests/unit/operator/kube/pod_json.h"

namespace muster::kube {
namespace {

using plan::ObservedReplica;
using plan::Phase;

constexpr const char* kOnFailure = R"({"restartPolicy": "OnFailure"})";
constexpr const char* kUnplaced = R"({"nodeName": null})";

struct PodCase {
  const char* name;
  const char* status;
  Phase phase;
  std::optional<int> exit_code;
  const char* reason;
  const char* last_line = "";
  bool ready = false;
  int restarts = 0;
  const char* metadata = "{}";
  const char* spec = "{}";
  bool node_lost = false;
};

// clang-format off: statuses as an API server writes them, a member a line
const PodCase kPodCases[] = {
    {"just created", R"({"phase": "Pending", "qosClass": "BestEffort"})", Phase::pending, {}, ""},
    {"no node has room",
     R"({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
         "reason": "Unschedulable", "message": "0/3 nodes are available: 3 Insufficient cpu."}]})",
     Phase::pending,
     {},
     "Unschedulable"},
    {"being created",
     R"({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}],
         "containerStatuses": [{"name": "trainer", "ready": false, "restartCount": 0,
           "state": {"waiting": {"reason": "ContainerCreating"}}}]})",
     Phase::pending,
     {},
     ""},
    {"image cannot be pulled",
     R"({"phase": "Pending", "containerStatuses": [
          {"name": "log", "ready": true, "restartCount": 0, "state": {"running": {}}},
          {"name": "trainer", "ready": false, "restartCount": 0,
           "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}]})",
     Phase::pending,
     {},
     "ImagePullBackOff"},
    {"image of an init container cannot be pulled",
     R"({"phase": "Pending", "initContainerStatuses": [
          {"name": "fetch", "ready": false, "restartCount": 0,
           "state": {"waiting": {"reason": "ImagePullBackOff"}}}],
         "containerStatuses": [{"name": "trainer", "ready": false, "restartCount": 0,
           "state": {"waiting": {"reason": "PodInitializing"}}}]})",
     Phase::pending,
     {},
     "ImagePullBackOff"},
    {"an init container keeps crashing",
     R"({"phase": "Pending", "initContainerStatuses": [
          {"name": "fetch", "ready": false, "restartCount": 3,
           "state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
         "containerStatuses": [{"name": "trainer", "ready": false, "restartCount": 0,
           "state": {"waiting": {"reason": "PodInitializing"}}}]})",
     Phase::pending,
     {},
     "CrashLoopBackOff",
     "",
     false,
     0,
     "{}",
     kOnFailure},
    {"runs",
     R"({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"},
                                            {"type": "ContainersReady", "status": "True"}],
         "containerStatuses": [{"name": "trainer", "ready": true, "restartCount": 0,
           "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}}}]})",
     Phase::running,
     {},
     "",
     "",
     true},
    {"runs beside a sidecar that does not",
     R"({"phase": "Running", "conditions": [{"type": "Ready", "status": "False",
           "reason": "ContainersNotReady"}, {"type": "ContainersReady", "status": "False"}],
         "containerStatuses": [
          {"name": "log", "ready": false, "restartCount": 4,
           "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
          {"name": "trainer", "ready": true, "restartCount": 0, "state": {"running": {}}}]})",
     Phase::running,
     {},
     "",
     "",
     true},
    {"runs on a node that does not answer",
     R"({"phase": "Running", "conditions": [{"type": "Ready", "status": "False"},
                                            {"type": "ContainersReady", "status": "True"}],
         "containerStatuses": [{"name": "trainer", "ready": true, "restartCount": 0,
           "state": {"running": {}}}]})",
     Phase::running,
     {},
     ""},
    {"restarted by the kubelet",
     R"({"phase": "Running", "containerStatuses": [{"name": "trainer", "ready": false,
           "restartCount": 2, "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}},
           "lastState": {"terminated": {"exitCode": 137, "reason": "Error", "message": "step 7\n"}}}]})",
     Phase::running, 137, "", "step 7", false, 2, "{}", kOnFailure},
    {"about to be restarted by the kubelet",
     R"({"phase": "Running", "containerStatuses": [{"name": "trainer", "ready": false,
           "restartCount": 0, "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}]})",
     Phase::pending, 1, "", "", false, 0, "{}", kOnFailure},
    {"in the kubelet's back-off",
     R"({"phase": "Running", "containerStatuses": [{"name": "trainer", "ready": false,
           "restartCount": 1, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
           "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}}]})",
     Phase::running, 1, "CrashLoopBackOff", "", false, 1, "{}", kOnFailure},
    {"succeeded",
     R"({"phase": "Succeeded", "containerStatuses": [{"name": "trainer", "ready": false,
           "restartCount": 0, "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]})",
     Phase::succeeded, 0, ""},
    {"succeeded while a sidecar goes on",
     R"({"phase": "Running", "containerStatuses": [
          {"name": "log", "ready": true, "restartCount": 0, "state": {"running": {}}},
          {"name": "trainer", "ready": false, "restartCount": 0,
           "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]})",
     Phase::succeeded, 0, ""},
    {"succeeded beside a sidecar that failed",
     R"({"phase": "Failed", "containerStatuses": [
          {"name": "log", "ready": false, "restartCount": 0,
           "state": {"terminated": {"exitCode": 1, "reason": "Error"}}},
          {"name": "trainer", "ready": false, "restartCount": 0,
           "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]})",
     Phase::succeeded, 0, ""},
    {"failed, with its last line",
     R"({"phase": "Failed", "containerStatuses": [{"name": "trainer", "ready": false,
           "restartCount": 0, "state": {"terminated": {"exitCode": 65, "reason": "Error",
             "message": "Traceback\n  file\nValueError: no such column\n"}}}]})",
     Phase::failed, 65, "", "ValueError: no such column"},
    {"failed after restarts by its supervisor",
     R"({"phase": "Failed", "containerStatuses": [{"name": "trainer", "ready": false,
           "restartCount": 0, "state": {"terminated": {"exitCode": 1, "reason": "Error",
             "message": "{\"restarts\":3,\"message\":\"lost ps 0\"}"}}}]})",
     Phase::failed, 1, "", "lost ps 0", false, 3},
    {"out of memory",
     R"({"phase": "Failed", "containerStatuses": [{"name": "trainer", "ready": false,
           "restartCount": 0, "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]})",
     Phase::failed, 137, "OOMKilled"},
    {"evicted by the kubelet before it ran",
     R"({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory.",
         "conditions": [{"type": "DisruptionTarget", "status": "True",
                         "reason": "TerminationByKubelet"}]})",
     Phase::failed,
     {},
     "Evicted",
     "The node was low on resource: memory."},
    {"evicted by the kubelet, answering with 0",
     R"({"phase": "Failed", "reason": "Evicted", "containerStatuses": [{"name": "trainer",
           "ready": false, "restartCount": 0,
           "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]})",
     Phase::failed, 0, "Evicted"},
    {"drained by the eviction API",
     R"({"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True",
           "reason": "EvictionByEvictionAPI", "lastTransitionTime": "2026-01-02T03:08:00Z"}],
         "containerStatuses": [{"name": "trainer", "ready": false, "restartCount": 0,
           "state": {"terminated": {"exitCode": 143, "reason": "Error",
                                    "finishedAt": "2026-01-02T03:08:02Z"}}}]})",
     Phase::failed, 143, "Evicted", "", false, 0, kDeleted},
    {"failed before it was drained",
     R"({"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True",
           "reason": "EvictionByEvictionAPI", "lastTransitionTime": "2026-01-02T03:08:10Z"}],
         "containerStatuses": [{"name": "trainer", "ready": false, "restartCount": 0,
           "state": {"terminated": {"exitCode": 1, "reason": "Error",
                                    "finishedAt": "2026-01-02T03:08:02Z"}}}]})",
     Phase::failed, 1, "", "", false, 0, kDeleted},
    {"preempted",
     R"({"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True",
           "reason": "PreemptionByScheduler"}],
         "containerStatuses": [{"name": "trainer", "ready": false, "restartCount": 0,
           "state": {"terminated": {"exitCode": 137, "reason": "Error"}}}]})",
     Phase::failed, 137, "Preempted", "", false, 0, kDeleted},
    {"on a node that shuts down",
     R"({"phase": "Failed", "reason": "Terminated",
         "message": "Pod was terminated in response to imminent node shutdown."})",
     Phase::failed,
     {},
     "Evicted",
     "Pod was terminated in response to imminent node shutdown."},
    {"its node was removed",
     R"({"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True",
           "reason": "DeletionByPodGC"}],
         "containerStatuses": [{"name": "trainer", "ready": true, "restartCount": 0,
           "state": {"running": {}}}]})",
     Phase::failed,
     {},
     "NodeLost",
     "",
     false,
     0,
     kDeleted},
    {"its node does not answer",
     R"({"phase": "Running", "conditions": [{"type": "DisruptionTarget", "status": "True",
           "reason": "DeletionByTaintManager"}],
         "containerStatuses": [{"name": "trainer", "ready": true, "restartCount": 0,
           "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}}}]})",
     Phase::failed,
     {},
     "NodeLost",
     "",
     false,
     0,
     kDeleted,
     "{}",
     true},
    {"ended before its node was lost",
     R"({"phase": "Succeeded", "containerStatuses": [{"name": "trainer", "ready": false,
           "restartCount": 0, "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]})",
     Phase::succeeded, 0, "", "", false, 0, kDeleted, "{}", true},
    {"deleted before it had a node",
     R"({"phase": "Pending"})",
     Phase::failed,
     {},
     "",
     "",
     false,
     0,
     kDeleted,
     kUnplaced},
    {"deleted, and still ending",
     R"({"phase": "Running", "containerStatuses": [{"name": "trainer", "ready": true,
           "restartCount": 0, "state": {"running": {}}}]})",
     Phase::running,
     {},
     "",
     "",
     true,
     0,
     kDeleted},
    {"deleted and ended, where the kubelet would have restarted it",
     R"({"phase": "Running", "containerStatuses": [{"name": "trainer", "ready": false,
           "restartCount": 0, "state": {"terminated": {"exitCode": 143, "reason": "Error"}}}]})",
     Phase::failed, 143, "", "", false, 0, kDeleted, kOnFailure},
    {"an init container failed",
     R"({"phase": "Failed", "initContainerStatuses": [{"name": "fetch", "ready": false,
           "restartCount": 0, "state": {"terminated": {"exitCode": 2, "reason": "Error",
             "message": "no such bucket"}}}],
         "containerStatuses": [{"name": "trainer", "ready": false, "restartCount": 0,
           "state": {"waiting": {"reason": "PodInitializing"}}}]})",
     Phase::failed,
     {},
     "InitContainerFailed",
     "init container fetch ended with exit code 2: no such bucket"},
    {"the second init container failed, with a log for its message",
     R"({"phase": "Failed", "initContainerStatuses": [
           {"name": "fetch", "ready": true, "restartCount": 0,
            "state": {"terminated": {"exitCode": 0, "reason": "Completed", "message": "done"}}},
           {"name": "unpack", "ready": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": 3, "reason": "Error",
              "message": "unpacking\nno room left\n"}}}]})",
     Phase::failed,
     {},
     "InitContainerFailed",
     "init container unpack ended with exit code 3: no room left"},
    {"an init container failed without a word",
     R"({"phase": "Failed", "initContainerStatuses": [{"name": "fetch", "ready": false,
           "restartCount": 0, "state": {"terminated": {"exitCode": 2, "reason": "Error"}}}]})",
     Phase::failed,
     {},
     "InitContainerFailed",
     "init container fetch ended with exit code 2"},
    {"refused by the kubelet",
     R"({"phase": "Failed", "reason": "OutOfcpu", "message": "Node didn't have enough resource"})",
     Phase::failed,
     {},
     "OutOfcpu",
     "Node didn't have enough resource"},
};
// clang-format on

TEST(Observe, KnowsWhatBecameOfTheReplica) {
  for (const PodCase& test : kPodCases) {
    const auto seen = observe(pod_with(test.status, test.metadata, test.spec), test.node_lost);
    ASSERT_TRUE(seen) << test.name;
    EXPECT_EQ(seen->phase, test.phase) << test.name;
    EXPECT_EQ(seen->exit_code, test.exit_code) << test.name;
    EXPECT_EQ(seen->reason, test.reason) << test.name;
    EXPECT_EQ(seen->last_line, test.last_line) << test.name;
    EXPECT_EQ(seen->ready, test.ready) << test.name;
    EXPECT_EQ(seen->restarts, test.restarts) << test.name;
    EXPECT_EQ(seen->deleting, test.metadata == kDeleted) << test.name;
  }
}

// The deletion was asked for at deletionTimestamp less the grace period.
TEST(Observe, KnowsAnEndFromBeforeTheDeletionWasAskedFor) {
  struct {
    const char* finished;
    const char* deletion;
    bool ended_first;
  } const cases[] = {
      {"03:09:20", R"({"deletionTimestamp": "2026-01-02T03:10:00Z",
                       "deletionGracePeriodSeconds": 30})",
       true},
      {"03:09:30", R"({"deletionTimestamp": "2026-01-02T03:10:00Z",
                       "deletionGracePeriodSeconds": 30})",
       false},
      {"03:10:00", R"({"deletionTimestamp": "2026-01-02T03:10:00Z",
                       "deletionGracePeriodSeconds": 30})",
       false},
      {"03:09:29", R"({"deletionTimestamp": "2026-01-02T03:09:30Z",
                       "deletionGracePeriodSeconds": 0})",
       false},  // the same second, nearly
      {"03:09:00", R"({"deletionTimestamp": "2026-01-02T03:09:30Z"})", true},
      {"03:09:00", "{}", false},
  };
  for (const auto& test : cases) {
    const std::string status = R"({"phase": "Running", "containerStatuses": [{"name": "trainer",
        "ready": false, "restartCount": 0, "state": {"terminated": {"exitCode": 137,
        "reason": "Error", "finishedAt": "2026-01-02T)" +
                               std::string(test.finished) + R"(Z"}}}]})";
    const auto seen = observe(pod_with(status, test.deletion));
    EXPECT_EQ(seen->phase, Phase::failed) << test.finished;
    EXPECT_EQ(seen->ended_first, test.ended_first) << test.finished << " " << test.deletion;
  }
}

TEST(Observe, TakesTheWordsOfWhatKeepsAReplicaFromRunning) {
  const auto explanation = [](const char* status) {
    return observe(pod_with(status))->explanation;
  };
  EXPECT_EQ(explanation(R"({"phase": "Pending", "conditions": [{"type": "PodScheduled",
      "status": "False", "reason": "Unschedulable", "message": "no node has room"}]})"),
            "no node has room");
  EXPECT_EQ(explanation(R"({"phase": "Pending", "containerStatuses": [{"name": "trainer",
      "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}]})"),
            "not found");
  EXPECT_EQ(explanation(R"({"phase": "Pending", "initContainerStatuses": [{"name": "fetch",
      "state": {"waiting": {"reason": "CreateContainerConfigError", "message": "no secret"}}}],
      "containerStatuses": [{"name": "trainer",
      "state": {"waiting": {"reason": "PodInitializing", "message": "later"}}}]})"),
            "no secret");
}

TEST(Observe, ReadsWhichReplicaItIsAndWhenItRan) {
  const auto seen = observe(pod_with(R"({"phase": "Succeeded", "containerStatuses": [
    {"name": "trainer", "ready": false, "restartCount": 0, "state": {"terminated": {
      "exitCode": 0, "startedAt": "2026-01-02T03:04:05Z", "finishedAt": "2026-01-02T03:04:09Z"}}}]})"));
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->role, api::Role::worker);
  EXPECT_EQ(seen->index, 1);
  EXPECT_EQ(seen->attempt, 2);
  EXPECT_EQ(seen->run, 3);
  EXPECT_EQ(seen->uid, "pod-uid");
  EXPECT_EQ(seen->started, api::parse_time("2026-01-02T03:04:05Z"));
  EXPECT_EQ(seen->finished, api::parse_time("2026-01-02T03:04:09Z"));
}

TEST(Observe, LeavesPodsOfOthersAlone) {
  for (const char* labels :
       {R"({})", R"({"muster.dev/role": "worker"})",
        R"({"muster.dev/role": "cook", "muster.dev/index": "0", "muster.dev/attempt": "0",
            "muster.dev/run": "0"})",
        R"({"muster.dev/role": "ps", "muster.dev/index": "-1", "muster.dev/attempt": "0",
            "muster.dev/run": "0"})",
        R"({"muster.dev/role": "ps", "muster.dev/index": "99999999999", "muster.dev/attempt": "0",
            "muster.dev/run": "0"})"}) {
    EXPECT_FALSE(observe(pod_with("{}", std::string(R"({"labels": )") + labels + "}"))) << labels;
  }
}

TEST(Observe, ReadsWhereTrainingEndedOnlyOfASuccess) {
  const auto ended = [](const std::string& code, const std::string& message) {
    Json status = Json::parse(R"({"phase": "Running", "containerStatuses": [
        {"name": "trainer", "state": {"terminated": {"exitCode": )" +
                              code + "}}}]}");
    status["containerStatuses"][0]["state"]["terminated"]["message"] = message;
    return final_progress(pod_with(status.dump()));
  };
  const char* words =
      R"({"restarts": 0, "message": "", "progress": {"step": 7, "loss": 1, "other": 2}})";
  EXPECT_EQ(ended("0", words), Json::parse(R"({"step": 7, "loss": 1, "other": 2})"));
  EXPECT_TRUE(ended("1", words).is_null());
  EXPECT_TRUE(ended("0", "bye").is_null());
  EXPECT_TRUE(ended("0", R"({"restarts": 0, "message": "", "progress": 3})").is_null());
}

// A pod of this replica whose container has ended with `code` and said `results`.
Pod ended_pod(const std::string& role, int attempt, int code, const Json& results) {
  Json status = Json::parse(R"({"phase": "Running", "containerStatuses": [
      {"name": "trainer", "state": {"terminated": {}}}]})");
  status["containerStatuses"][0]["state"]["terminated"] = {
      {"exitCode", code}, {"message", TerminationMessage{0, "", {}, results}.text()}};
  Pod pod = pod_with(status.dump());
  pod.meta.labels[kRoleLabel] = role;
  pod.meta.labels[kIndexLabel] = "0";
  pod.meta.labels[kAttemptLabel] = std::to_string(attempt);
  return pod;
}

TEST(Observe, PassesOverNumbersThatCannotBeCountedOnFrom) {
  for (const char* label : {kIndexLabel, kAttemptLabel, kRunLabel}) {
    Pod pod = pod_with(R"({"phase": "Running"})");
    pod.meta.labels[label] = "1000000000";
    EXPECT_TRUE(observe(pod)) << label;
    for (const char* number :
         {"1000000001", "2147483647", "99999999999999999999", "-1", "1e3", ""}) {
      pod.meta.labels[label] = number;
      EXPECT_FALSE(observe(pod)) << label << " " << number;
    }
  }
}

TEST(FinalResults, AreTheLeadersAndTheEvaluatorsOfTheSameWeights) {
  api::TrainingJob job;
  job.replicas[api::Role::chief].replicas = 1;
  const Json of_leader = {{"step", 20}, {"exportedStep", 10}, {"weightsDigest", "ab"}};
  const auto evaluation = [](int step, double loss) {
    return Json{{"exportedStep", step}, {"test", {{"loss", loss}}}};
  };
  const Pod chief = ended_pod("chief", 0, 0, of_leader);
  EXPECT_EQ(nlohmann::json(final_results(job, {chief})), nlohmann::json(of_leader));
  const Pod bad_data = ended_pod("evaluator", 0, 65, evaluation(10, 0.5));
  EXPECT_EQ(final_results(job, {chief, bad_data})["test"]["loss"], 0.5)
      << "what it could use, it has evaluated";
  const Pod again = ended_pod("evaluator", 1, 0, evaluation(10, 0.25));
  EXPECT_EQ(final_results(job, {again, chief, bad_data})["test"]["loss"], 0.25);
  const Pod stale = ended_pod("evaluator", 2, 1, evaluation(20, 9));
  EXPECT_FALSE(final_results(job, {chief, stale}).contains("test"));
  EXPECT_TRUE(final_results(job, {again}).is_null());
  api::TrainingJob trained = job;
  trained.training = {{"epochs", 1}};
  const Pod exported = ended_pod("chief", 0, 0, {{"step", 20}, {"model", "/muster/model"}});
  EXPECT_TRUE(final_results(job, {exported}).contains("model"));
  EXPECT_FALSE(final_results(trained, {exported}).contains("model"))
      << "it was in the pod's own volume";
  EXPECT_TRUE(final_results(job, {ended_pod("chief", 0, 1, of_leader)}).is_null());
  EXPECT_TRUE(final_results(job, {ended_pod("worker", 0, 0, of_leader)}).is_null());
  const Pod later = ended_pod("chief", 1, 0, {{"step", 30}, {"exportedStep", 30}});
  EXPECT_EQ(final_results(job, {later, chief})["step"], 30);
}

TEST(Observe, SuspectsTheNodeOfAPodThatDoesNotEnd) {
  const char* tainted = R"({"phase": "Running", "conditions": [
    {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}]})";
  const char* called_not_ready = R"({"phase": "Running", "conditions": [
    {"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}]})";
  const char* leaving = R"({"phase": "Running", "conditions": [
    {"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "False"}]})";
  EXPECT_TRUE(is_suspect(pod_with(tainted, kDeleted)));
  EXPECT_TRUE(is_suspect(pod_with(called_not_ready, kDeleted)));
  EXPECT_FALSE(is_suspect(pod_with(called_not_ready))) << "not asked to leave";
  EXPECT_FALSE(is_suspect(pod_with(leaving, kDeleted))) << "its kubelet answers";
  EXPECT_FALSE(is_suspect(pod_with(tainted, kDeleted, kUnplaced)));
  EXPECT_FALSE(is_suspect(pod_with(R"({"phase": "Failed"})", kDeleted)));
}

TEST(Observe, KnowsAnUnreachableNode) {
  const auto node = [](const char* text) { return is_unreachable(Json::parse(text)); };
  EXPECT_TRUE(node(R"({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}})"));
  EXPECT_TRUE(node(R"({"spec": {"taints": [{"key": "node.kubernetes.io/unreachable",
                                            "effect": "NoExecute"}]}})"));
  EXPECT_FALSE(node(R"({"status": {"conditions": [{"type": "Ready", "status": "False"},
                                                  {"type": "DiskPressure", "status": "Unknown"}]}})"));
  EXPECT_FALSE(node("{}"));
}

TEST(Observe, NoticesContainersThatOutliveTheReplica) {
  const char* outlived = R"({"phase": "Running", "containerStatuses": [
    {"name": "log", "state": {"running": {}}},
    {"name": "trainer", "state": {"terminated": {"exitCode": 0}}}]})";
  EXPECT_TRUE(outlives_replica(pod_with(outlived)));
  EXPECT_FALSE(outlives_replica(pod_with(outlived, kDeleted)));
  EXPECT_FALSE(outlives_replica(pod_with(R"({"phase": "Running", "containerStatuses": [
    {"name": "trainer", "state": {"running": {}}}]})")));
  EXPECT_FALSE(outlives_replica(pod_with(R"({"phase": "Succeeded", "containerStatuses": [
    {"name": "trainer", "state": {"terminated": {"exitCode": 0}}}]})")));
  // As a kubelet reports it, and then the phase: nothing goes on.
  EXPECT_FALSE(outlives_replica(pod_with(R"({"phase": "Running", "containerStatuses": [
    {"name": "log", "state": {"terminated": {"exitCode": 0}}},
    {"name": "trainer", "state": {"terminated": {"exitCode": 0}}}]})")));
}

TEST(Observe, ReadsTheMarksOfAPod) {
  EXPECT_TRUE(is_tracked(pod_with("{}")));
  EXPECT_FALSE(is_tracked(pod_with("{}", R"({"finalizers": ["other"]})")));
  EXPECT_TRUE(is_current(pod_with("{}")));
  EXPECT_FALSE(is_current(pod_with("{}", R"({"labels": {}})")));
}

}  // namespace
}  // namespace muster::kube
