#include "operator/kube/kueue/queued_cluster.h"

#include <gmock/gmock.h>

#include <array>
#include <map>

#include "tests/unit/operator/kube/chart_rights.h"
#include "tests/unit/operator/kube/cluster/kube_cluster_fixture.h"

namespace muster::kube {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::HasSubstr;

// The test plays Kueue.
class QueuedClusterTest : public KubeClusterTest {
 protected:
  // deploy/muster.yaml is the chart with its defaults, which knows no queues.
  QueuedClusterTest() {
    server().permits = [rights = chart_rights({"muster", "muster-nodes"})](const Request& request) {
      const auto is_of = [&](const char* part) {
        return request.path.find(part) != std::string::npos;
      };
      return is_of("/workloads") || is_of("priorityclasses") || rights(request);
    };
    server().put({{"apiVersion", "kueue.x-k8s.io/v1beta2"},
                  {"kind", "ResourceFlavor"},
                  {"metadata", {{"name", "spot"}}},
                  {"spec",
                   {{"nodeLabels", {{"pool", "spot"}}},
                    {"tolerations", Json::array({{{"key", "spot"}, {"operator", "Exists"}}})}}}});
  }

  void submit(const Json& more_of_spec = Json::object(), Json labels = Json::object()) {
    labels[kQueueLabel] = "team-a";
    world_.submit("mnist", more_of_spec, labels);
    world_.settle();
  }
  Json workload() {
    const std::vector<Json> all = server().objects("workloads");
    if (all.size() != 1) ADD_FAILURE() << "expected one Workload, found " << all.size();
    return all.empty() ? Json() : all[0];
  }
  // Status, reason and message of conditions, by their types.
  void set_conditions(const std::map<std::string, std::array<std::string, 3>>& conditions,
                      const Json& more_of_status = Json::object()) {
    Json changed = workload();
    Json& status = changed["status"];
    for (const auto& [type, value] : conditions) {
      Json kept = Json::array();
      for (const Json& before : member(status, "conditions"))
        if (before["type"] != type) kept.push_back(before);
      kept.push_back({{"type", type},
                      {"status", value[0]},
                      {"reason", value[1]},
                      {"message", value[2]},
                      {"lastTransitionTime", "2026-01-01T00:00:00Z"}});
      status["conditions"] = kept;
    }
    status.merge_patch(more_of_status);
    server().put(changed);
    world_.settle();
  }
  void admit(int workers = 1) {
    Json assignments = Json::array();
    const Json waiting = workload();
    for (const Json& set : waiting["spec"]["podSets"])
      assignments.push_back({{"name", set["name"]},
                             {"flavors", {{"cpu", "spot"}}},
                             {"count", set["name"] == "worker" ? Json(workers) : set["count"]}});
    set_conditions({{"QuotaReserved", {"True", "QuotaReserved", "reserved"}},
                    {"Admitted", {"True", "Admitted", "admitted"}},
                    {"Evicted", {"False", "QuotaReserved", ""}}},
                   {{"admission", {{"clusterQueue", "all"}, {"podSetAssignments", assignments}}}});
  }
  void evict(const std::string& reason = "Preempted") {
    set_conditions({{"Evicted", {"True", reason, "a job of higher priority came"}}});
  }
  void run() {
    world_.run_all();
    world_.run_for(5s);
  }
  void start_admitted() {
    submit();
    admit();
    run();
  }
  void leave() {
    for (int round = 0; round < 3; ++round) {
      server().end_leaving_pods();
      world_.run_for(2s);
    }
  }
  std::string of_workload(const std::string& type) {
    const Json found = workload();
    for (const Json& condition : member(member(found, "status"), "conditions"))
      if (condition["type"] == type)
        return condition["status"].get<std::string>() + " " +
               condition["reason"].get<std::string>();
    return "";
  }
};

TEST_F(QueuedClusterTest, AJobRunsOnceItsQueueHasAdmittedIt) {
  submit();
  EXPECT_EQ(world_.pods(), "");
  EXPECT_EQ(workload()["spec"]["queueName"], "team-a");
  EXPECT_EQ(workload()["metadata"]["ownerReferences"][0]["uid"], world_.job()["metadata"]["uid"]);
  EXPECT_EQ(world_.condition("Suspended"), "True Queued");
  set_conditions({{"QuotaReserved", {"False", "Pending", "insufficient quota for cpu"}}});
  world_.run_for(2s);
  EXPECT_EQ(message("Suspended"), "the job waits in queue team-a: insufficient quota for cpu");
  EXPECT_EQ(world_.job()["status"]["state"], "Queued");
  EXPECT_EQ(world_.job()["status"]["cause"], message("Suspended"));

  admit();
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 ps-0.0 worker-0.0");
  const Json pod = server().object("pods", world_.pod("worker-0"));
  EXPECT_EQ(pod["spec"]["nodeSelector"]["pool"], "spot");
  EXPECT_THAT(pod["spec"]["tolerations"].dump(), HasSubstr(R"("key":"spot")"));
  EXPECT_EQ(pod["metadata"]["labels"]["kueue.x-k8s.io/podset"], "worker");
  run();
  EXPECT_EQ(world_.condition("Running"), "True AllReplicasReady");
  EXPECT_EQ(of_workload("PodsReady"), "True Started");

  server().end_pod(world_.pod("chief-0"), 0);
  server().end_pod(world_.pod("evaluator-0"), 0);
  world_.settle();
  leave();
  EXPECT_EQ(world_.condition("Finished"), "True ChiefSucceeded");
  EXPECT_EQ(of_workload("Finished"), "True Succeeded");
  EXPECT_THAT(world_.events, Contains("mnist: Queued"));
  EXPECT_THAT(world_.events, Contains("mnist: Admitted"));
}

TEST_F(QueuedClusterTest, AJobWithoutAQueueHasNoWorkload) {
  start();
  EXPECT_TRUE(server().objects("workloads").empty());
  EXPECT_EQ(world_.condition("Running"), "True AllReplicasReady");
}

TEST_F(QueuedClusterTest, APreemptedJobGivesItsQuotaBackWhenItsLastPodHasGone) {
  start_admitted();
  evict();
  EXPECT_EQ(world_.condition("Suspended"), "False Suspending");
  EXPECT_EQ(of_workload("QuotaReserved"), "True QuotaReserved");
  server().end_leaving_pods();
  world_.run_for(2s);
  EXPECT_EQ(of_workload("QuotaReserved"), "True QuotaReserved") << "the ps is still there";
  leave();
  EXPECT_EQ(world_.pods(), "");
  EXPECT_EQ(of_workload("QuotaReserved"), "False Pending");
  EXPECT_EQ(of_workload("Admitted"), "False NoReservation");
  EXPECT_EQ(of_workload("Requeued"), "True Preempted");
  EXPECT_FALSE(workload()["status"].contains("admission"));
  EXPECT_EQ(world_.condition("Suspended"), "True Queued");
  EXPECT_THAT(world_.events, Contains("mnist: Preempted"));

  admit();
  EXPECT_EQ(world_.pods(), "chief-0.1 evaluator-0.1 ps-0.1 worker-0.1");
  EXPECT_EQ(integer_or(world_.job()["status"], "restarts", 0), 0);
}

// Kueue evicts a job that is not ready in time, but gives one that recovers another time.
TEST_F(QueuedClusterTest, AJobThatRecoversIsNotOneThatStarts) {
  start_admitted();
  server().end_pod(world_.pod("worker-0"), 137);
  world_.run_for(1s);
  EXPECT_EQ(of_workload("PodsReady"), "False WaitForRecovery");
  world_.run_for(60s);
  run();
  EXPECT_EQ(of_workload("PodsReady"), "True Recovered");
  evict();
  leave();
  EXPECT_EQ(of_workload("PodsReady"), "False WaitForStart");
}

// Its next admission must be for all replicas, also for those that had ended.
TEST_F(QueuedClusterTest, WhatWasGivenBackIsAskedForAgain) {
  start_admitted();
  server().end_pod(world_.pod("worker-0"), 0);
  world_.run_for(2s);
  EXPECT_EQ(workload()["status"]["reclaimablePods"],
            Json::parse(R"([{"name": "worker", "count": 1}])"));
  evict();
  leave();
  EXPECT_FALSE(workload()["status"].contains("reclaimablePods"));
}

// The plan may still need an evaluator when a job that has succeeded is evicted.
TEST_F(QueuedClusterTest, AnEvictedJobInItsEndingKeepsToItsNodes) {
  start_admitted();
  server().end_pod(world_.pod("chief-0"), 0);
  world_.run_for(1s);
  evict();
  server().end_pod(world_.pod("evaluator-0"), 137);
  world_.run_for(120s);
  const Json again = server().object("pods", world_.pod("evaluator-0"));
  EXPECT_EQ(again["metadata"]["labels"]["muster.dev/attempt"], "1");
  EXPECT_EQ(again["spec"]["nodeSelector"]["pool"], "spot");
}

// A mirror of Workloads may lag behind the job's.
TEST_F(QueuedClusterTest, AnOldViewOfItsWorkloadStopsNoJob) {
  start_admitted();
  const Json admitted = workload();
  world_.tells_of_workloads = false;
  Json old = admitted;
  old["status"] = Json::object();
  server().put(old);
  world_.see_workloads();
  server().put(admitted);
  world_.wake("lab/mnist", world_.time);
  world_.run_for(10s);
  EXPECT_EQ(world_.condition("Running"), "True AllReplicasReady");
  EXPECT_EQ(world_.condition("Suspended"), "False Admitted");
}

// An old view or a new operator must not take a job for one that nobody has admitted.
TEST_F(QueuedClusterTest, UntilWorkloadsAreInViewAJobIsLeftAlone) {
  start_admitted();
  world_.sees_queues = false;
  world_.restart_operator();
  world_.wake("lab/mnist", world_.time);
  world_.run_for(30s);
  EXPECT_EQ(world_.condition("Running"), "True AllReplicasReady");
  EXPECT_THAT(world_.troubles.back().message, HasSubstr("not in view yet"));
  world_.sees_queues = true;
  world_.run_for(60s);
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 ps-0.0 worker-0.0");
}

TEST_F(QueuedClusterTest, ASuspendedJobsWorkloadIsNotActive) {
  start_admitted();
  change_spec({{"suspend", true}});
  EXPECT_EQ(workload()["spec"]["active"], false);
  evict("Deactivated");
  leave();
  EXPECT_EQ(world_.condition("Suspended"), "True Suspended");
  EXPECT_EQ(of_workload("QuotaReserved"), "False Pending");
  EXPECT_EQ(of_workload("Requeued"), "False Deactivated");
  change_spec({{"suspend", false}});
  EXPECT_EQ(workload()["spec"]["active"], true);
  EXPECT_EQ(world_.condition("Suspended"), "True Queued");
  admit();
  EXPECT_EQ(world_.pods(), "chief-0.1 evaluator-0.1 ps-0.1 worker-0.1");
}

TEST_F(QueuedClusterTest, AWorkloadThatSomebodyElseHasDeactivatedStaysSo) {
  submit();
  Json changed = workload();
  changed["spec"]["active"] = false;
  server().put(changed);
  world_.run_for(10s);
  EXPECT_EQ(world_.condition("Suspended"), "True Deactivated");
  EXPECT_EQ(workload()["spec"]["active"], false);
}

// Its pods may have gone before Kueue, which may be slow, has evicted it.
TEST_F(QueuedClusterTest, ARunningJobThatIsDeactivatedStaysSoThoughKueueIsSlow) {
  start_admitted();
  Json changed = workload();
  changed["spec"]["active"] = false;
  server().put(changed);
  world_.settle();
  leave();
  world_.run_for(30s);
  EXPECT_EQ(workload()["metadata"]["uid"], changed["metadata"]["uid"]);
  EXPECT_EQ(workload()["spec"]["active"], false);
  EXPECT_EQ(world_.condition("Suspended"), "True Deactivated");
  EXPECT_EQ(world_.pods(), "");
}

TEST_F(QueuedClusterTest, QueuesThatStayOutOfViewAreSaidOnce) {
  world_.sees_queues = false;
  submit();
  world_.run_for(10s);
  EXPECT_EQ(std::ranges::count(world_.events, "mnist: QueuesNotInView"), 0);
  world_.run_for(120s);
  EXPECT_EQ(std::ranges::count(world_.events, "mnist: QueuesNotInView"), 1);
}

TEST_F(QueuedClusterTest, AJobThatIsChangedInTheQueueChangesItsWorkload) {
  submit();
  const std::string uid = workload()["metadata"]["uid"];
  scale(3);
  world_.run_for(5s);
  EXPECT_EQ(workload()["metadata"]["uid"], uid);
  EXPECT_THAT(workload()["spec"]["podSets"].dump(), HasSubstr(R"("name":"worker","count":3)"));
  Json job = world_.job();
  job["metadata"]["labels"][kQueueLabel] = "team-b";
  server().put(job);
  world_.run_for(5s);
  EXPECT_EQ(workload()["spec"]["queueName"], "team-b");
}

TEST_F(QueuedClusterTest, AJobThatIsChangedWhileItRunsStopsAndJoinsAgain) {
  start_admitted();
  const std::string uid = workload()["metadata"]["uid"];
  scale(3);
  leave();
  EXPECT_EQ(world_.pods(), "");
  EXPECT_NE(workload()["metadata"]["uid"], uid);
  EXPECT_EQ(world_.condition("Suspended"), "True Queued");
  admit(3);
  EXPECT_THAT(world_.pods(), HasSubstr("worker-2.0"));
}

TEST_F(QueuedClusterTest, AnElasticJobRunsWithTheWorkersThatWereAdmitted) {
  Json spec = training();
  spec["elastic"] = {{"minReplicas", 1}, {"maxReplicas", 4}};
  spec["strategy"] = "collective";
  spec["replicaSpecs"] = {{"worker", {{"replicas", 3}}}, {"ps", nullptr}};
  submit(spec);
  EXPECT_EQ(message("Accepted"), "the job can be run");
  EXPECT_THAT(workload()["spec"]["podSets"].dump(), HasSubstr(R"("minCount":1)"));
  admit(2);
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 worker-0.0 worker-1.0");
  EXPECT_THAT(world_.messages, Contains(HasSubstr("2 of 3 workers")));
  run();
  EXPECT_EQ(world_.condition("Running"), "True AllReplicasReady");
  scale(1);
  leave();
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 worker-0.0");
  EXPECT_FALSE(workload()["status"].contains("reclaimablePods"))
      << "it may be scaled up again at any time";
  scale(4);
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 worker-0.0 worker-1.1")
      << "no more than were admitted";
}

TEST_F(QueuedClusterTest, AJobThatIsGivenMoreEpochsWaitsAgain) {
  submit(training());
  admit();
  run();
  server().end_pod(world_.pod("chief-0"), 0);
  server().end_pod(world_.pod("evaluator-0"), 0);
  world_.settle();
  leave();
  world_.run_for(60s);
  leave();
  ASSERT_EQ(world_.condition("Finished"), "True ChiefSucceeded");
  ASSERT_EQ(of_workload("Finished"), "True Succeeded");
  change_spec({{"training", {{"epochs", 3}}}});
  world_.run_for(5s);
  EXPECT_EQ(world_.pods(), "") << "nobody has admitted it";
  EXPECT_EQ(world_.condition("Suspended"), "True Queued");
  EXPECT_EQ(of_workload("Finished"), "") << "it is another Workload";
  admit();
  EXPECT_THAT(world_.pods(), HasSubstr("chief-0.1"));
}

TEST_F(QueuedClusterTest, AJobWhoseWorkloadIsDeletedStopsAndJoinsAgain) {
  start_admitted();
  server().remove("workloads", workload()["metadata"]["name"]);
  world_.run_for(1s);
  leave();
  EXPECT_EQ(world_.condition("Suspended"), "True Queued");
  EXPECT_EQ(workload()["spec"]["queueName"], "team-a");
}

TEST_F(QueuedClusterTest, AJobThatLeavesItsQueueRuns) {
  submit();
  Json job = world_.job();
  job["metadata"]["labels"].erase(kQueueLabel);
  server().put(job);
  world_.run_for(5s);
  EXPECT_TRUE(server().objects("workloads").empty());
  EXPECT_EQ(world_.pods(), "chief-0.0 evaluator-0.0 ps-0.0 worker-0.0");
}

TEST_F(QueuedClusterTest, APriorityClassThatIsMissingIsWaitedFor) {
  submit(Json::object(), {{kPriorityLabel, "urgent"}});
  EXPECT_TRUE(server().objects("workloads").empty());
  world_.run_for(10s);
  EXPECT_EQ(message("Suspended"),
            "the job joins queue team-a: expected the WorkloadPriorityClass urgent that the job "
            "names, found none");
  server().put({{"apiVersion", "kueue.x-k8s.io/v1beta2"},
                {"kind", "WorkloadPriorityClass"},
                {"metadata", {{"name", "urgent"}}},
                {"value", 1000}});
  world_.run_for(10s);
  EXPECT_EQ(workload()["spec"]["priority"], 1000);
  EXPECT_EQ(workload()["spec"]["priorityClassRef"],
            Json::parse(R"({"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass",
                            "name": "urgent"})"));
}

// Kueue's own integration suspends the TFJob.
TEST_F(QueuedClusterTest, TheTrainingJobOfATfJobIsInNoQueue) {
  world_.submit("mnist", Json::object(), {{kQueueLabel, "team-a"}});
  Json job = world_.job();
  job["metadata"]["ownerReferences"] = Json::parse(R"([{"apiVersion": "kubeflow.org/v1",
      "kind": "TFJob", "name": "mnist", "uid": "u1", "controller": true}])");
  server().put(job);
  world_.settle();
  EXPECT_TRUE(server().objects("workloads").empty());
}

TEST_F(QueuedClusterTest, AConflictIsTriedAgain) {
  submit();
  admit();
  refuse(Method::put, "/workloads/", refusal(409, "Conflict", "the object has been modified"));
  run();
  world_.run_for(10s);
  EXPECT_EQ(of_workload("PodsReady"), "True Started");
}

}  // namespace
}  // namespace muster::kube
