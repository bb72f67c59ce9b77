#include "operator/kube/kueue/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/documents/json.h"

namespace muster::kube {
namespace {

using testing::HasSubstr;

api::TrainingJob job_of(const std::string& more = "{}") {
  Json manifest = Json::parse(R"({
    "apiVersion": "muster.dev/v1alpha1", "kind": "TrainingJob",
    "metadata": {"name": "mnist", "namespace": "lab", "uid": "u1"},
    "spec": {"replicaSpecs": {
      "master": {"replicas": 1, "template": {"spec": {"containers": [
        {"name": "main", "image": "tf", "env": [{"name": "A", "value": "1"}],
         "resources": {"requests": {"cpu": "2"}}}]}}},
      "worker": {"replicas": 2, "template": {
        "metadata": {"annotations": {"kueue.x-k8s.io/podset-required-topology": "rack"}},
        "spec": {"containers": [{"name": "main", "image": "tf"}]}}}}}})");
  manifest.merge_patch(Json::parse(more));
  return api::to_training_job(manifest);
}

Json workload(const api::TrainingJob& job, const Json& status = Json::object()) {
  Json made = workload_of(job, {"team-a", "", {}}, {});
  made["status"] = status;
  return made;
}

Json condition(const char* type, const char* value, const char* reason, const char* message) {
  return {{"type", type},
          {"status", value},
          {"reason", reason},
          {"message", message},
          {"lastTransitionTime", "2026-01-01T00:00:00Z"}};
}

TEST(Workload, LabelsSayTheQueue) {
  EXPECT_FALSE(queue_request_of({}));
  EXPECT_FALSE(queue_request_of({{kPriorityLabel, "urgent"}}));
  const auto request = queue_request_of(
      {{kQueueLabel, "team-a"}, {kPriorityLabel, "urgent"}, {kMostSecondsLabel, "3600"}});
  ASSERT_TRUE(request);
  EXPECT_EQ(request->queue, "team-a");
  EXPECT_EQ(request->priority_class, "urgent");
  EXPECT_EQ(request->most_seconds, 3600);
  for (const char* wrong : {"", "x", "-1", "0", "3600s", "99999999999"})
    EXPECT_FALSE(queue_request_of({{kQueueLabel, "a"}, {kMostSecondsLabel, wrong}})->most_seconds)
        << wrong;
}

TEST(Workload, HasAPodSetForEachRoleWithWhatKueueCounts) {
  const Json made = workload_of(job_of(), {"team-a", "", 60}, {"t", "c", "", ""});
  const Json& sets = made["spec"]["podSets"];
  ASSERT_EQ(sets.size(), 2u);
  EXPECT_EQ(sets[0]["name"], "master");
  EXPECT_EQ(sets[0]["count"], 1);
  EXPECT_FALSE(sets[0].contains("topologyRequest"));
  const Json& container = sets[0]["template"]["spec"]["containers"][0];
  EXPECT_EQ(container["resources"]["requests"]["cpu"], "2");
  EXPECT_FALSE(container.contains("env"));
  EXPECT_EQ(sets[1]["name"], "worker");
  EXPECT_EQ(sets[1]["count"], 2);
  EXPECT_EQ(sets[1]["topologyRequest"],
            Json::parse(R"({"required": "rack", "podIndexLabel": "muster.dev/index"})"));
  // The requests that a template without any gets.
  EXPECT_EQ(sets[1]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"], "100m");
  EXPECT_EQ(made["spec"]["maximumExecutionTimeSeconds"], 60);
  EXPECT_EQ(made["metadata"]["name"], workload_name(job_of()));
}

TEST(Workload, AsksTheSameWhateverTheOperatorsImageIs) {
  const api::TrainingJob job = job_of();
  const QueueRequest request{"team-a", "", {}};
  const Json made = workload_of(job, request, {"t:1", "c", "", ""});
  EXPECT_TRUE(asks_the_same(made, job, request));
  EXPECT_FALSE(asks_the_same(made, job, {"team-b", "", {}}));
  EXPECT_FALSE(asks_the_same(made, job, {"team-a", "urgent", {}}));
  EXPECT_FALSE(asks_the_same(made, job, {"team-a", "", 60}));
  EXPECT_FALSE(asks_the_same(
      made, job_of(R"({"spec": {"replicaSpecs": {"worker": {"replicas": 3}}}})"), request));
  Json reserved = made;
  reserved["status"]["conditions"] =
      Json::array({condition("QuotaReserved", "True", "QuotaReserved", "")});
  EXPECT_TRUE(asks_the_same(reserved, job, {"team-b", "", {}})) << "it cannot change its queue";
  reserved["metadata"]["annotations"]["muster.dev/asked"] = "v2:0";
  EXPECT_TRUE(asks_the_same(reserved, job, request)) << "another operator has written it";
  reserved["metadata"]["annotations"]["muster.dev/asked"] = "v1:0";
  EXPECT_FALSE(asks_the_same(reserved, job, request));
}

TEST(Workload, HoldsTheJobUntilItIsAdmitted) {
  struct Case {
    const char* name;
    Json conditions;
    bool active;
    const char* reason;  // null: no hold
    const char* part;    // of the message
  };
  const Json reserved = condition("QuotaReserved", "True", "QuotaReserved", "");
  const Json admitted = condition("Admitted", "True", "Admitted", "");
  const Case cases[] = {
      {"new", Json::array(), true, "Queued", "waits in queue team-a"},
      {"no quota", Json::array({condition("QuotaReserved", "False", "Pending", "no cpu")}), true,
       "Queued", "waits in queue team-a: no cpu"},
      {"checks",
       Json::array(
           {reserved, condition("Admitted", "False", "UnsatisfiedAdmissionChecks", "check")}),
       true, "Queued", "check"},
      {"admitted", Json::array({reserved, admitted}), true, nullptr, ""},
      {"preempted",
       Json::array({reserved, admitted, condition("Evicted", "True", "Preempted", "higher")}), true,
       "Preempted", "wants the job's quota back: higher"},
      {"late",
       Json::array({reserved, admitted, condition("Evicted", "True", "PodsReadyTimeout", "late")}),
       true, "Evicted", "late"},
      {"waits again",
       Json::array({condition("QuotaReserved", "False", "Pending", "no cpu"),
                    condition("Evicted", "True", "Preempted", "higher")}),
       true, "Queued", "no cpu"},
      {"deactivated", Json::array({condition("Evicted", "True", "Deactivated", "too often")}),
       false, "Deactivated", "too often"},
      {"finished", Json::array({condition("Finished", "True", "Succeeded", "")}), true, "Queued",
       "joins queue team-a"},
      {"hostile", Json::parse(R"([7, null, {"type": 3}, {"type": "Admitted", "status": true}])"),
       true, "Queued", "waits"},
  };
  const api::TrainingJob job = job_of();
  for (const Case& one : cases) {
    Json made = workload(job, {{"conditions", one.conditions}});
    made["spec"]["active"] = one.active;
    const auto hold = hold_of(job, {"team-a", "", {}}, made);
    ASSERT_EQ(hold.has_value(), one.reason != nullptr) << one.name;
    if (!hold) continue;
    EXPECT_EQ(hold->reason, one.reason) << one.name;
    EXPECT_THAT(hold->message, HasSubstr(one.part)) << one.name;
  }
  EXPECT_EQ(hold_of(job, {"team-a", "", {}}, nullptr)->message, "the job joins queue team-a");
}

TEST(Workload, AdmissionPlacesThePods) {
  api::TrainingJob job = job_of();
  const Json made = workload(job, Json::parse(R"({
    "admission": {"podSetAssignments": [
      {"name": "worker", "count": 1, "flavors": {"cpu": "spot", "memory": "spot"},
       "topologyAssignment": {"levels": ["rack"]}},
      {"name": "master", "flavors": {"cpu": "fixed"}},
      {"name": "stranger", "flavors": {"cpu": "none"}}]},
    "admissionChecks": [{"name": "c", "podSetUpdates": [
      {"name": "worker", "labels": {"l": "1"}, "nodeSelector": {"zone": "b"}}]}]})"));
  std::string asked;
  const std::string fewer = admit(job, made, [&](const std::string& name) {
    asked += name + " ";
    return Json::parse(R"({"nodeLabels": {"pool": ")" + name + R"("},
                           "tolerations": [{"key": "spot", "operator": "Exists"}]})");
  });
  EXPECT_EQ(fewer, "") << "the job is not elastic";
  EXPECT_EQ(asked, "spot spot fixed ");
  const Json& worker = job.replicas.at(api::Role::worker).pod_template;
  EXPECT_EQ(worker["spec"]["nodeSelector"], Json::parse(R"({"pool": "spot", "zone": "b"})"));
  EXPECT_EQ(worker["spec"]["tolerations"].size(), 1u);
  EXPECT_EQ(worker["spec"]["schedulingGates"],
            Json::parse(R"([{"name": "kueue.x-k8s.io/topology"}])"));
  EXPECT_EQ(worker["metadata"]["labels"],
            Json::parse(R"({"kueue.x-k8s.io/podset": "worker", "l": "1"})"));
  EXPECT_EQ(worker["metadata"]["annotations"]["kueue.x-k8s.io/workload"], workload_name(job));
  const Json& master = job.replicas.at(api::Role::chief).pod_template;
  EXPECT_EQ(master["spec"]["nodeSelector"]["pool"], "fixed");
  EXPECT_FALSE(master["spec"].contains("schedulingGates"));
}

TEST(Workload, TellsWhichReplicasAreDone) {
  const api::TrainingJob job = job_of();
  const Json made = workload(
      job, {{"conditions", Json::array({condition("QuotaReserved", "True", "QuotaReserved", ""),
                                        condition("Admitted", "True", "Admitted", "")})}});
  api::JobStatus status;
  for (const int index : {0, 1, 2}) {
    api::ReplicaRecord& record = status.records.emplace_back();
    record.index = index;
    record.succeeded = index > 0;
  }
  const api::Time now{};
  const Json next = next_workload_status(made, job, status, now);
  EXPECT_EQ(next["reclaimablePods"], Json::parse(R"([{"name": "worker", "count": 2}])"));
  // Kueue takes no smaller number.
  Json told = made;
  told["status"] = next;
  status.records[2].succeeded = false;
  EXPECT_EQ(next_workload_status(told, job, status, now)["reclaimablePods"],
            next["reclaimablePods"]);
}

}  // namespace
}  // namespace muster::kube
