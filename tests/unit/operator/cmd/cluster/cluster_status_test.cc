#include "operator/cmd/cluster/cluster_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/status.h"
#include "operator/cmd/show/attention.h"
#include "operator/cmd/show/summary_text.h"
#include "tests/unit/operator/kube/pod_json.h"

namespace muster::cmd {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

api::Time at(const char* text) {
  return *api::parse_time(text);
}

// Two workers, of which pod_with()'s is the second.
ClusterJob seen_with(const std::string& pod_status) {
  ClusterJob seen;
  seen.job.name = "mnist";
  seen.job.name_space = "lab";
  seen.job.replicas[api::Role::worker].replicas = 2;
  seen.job.status.observed_generation = 1;
  seen.job.status.conditions = {{"Accepted", true, "Valid", "the manifest is fine", {}}};
  seen.job.status.replica_statuses[api::Role::worker] = {1, 2, 0, 0, 1};
  seen.job.status.restarts = 1;
  api::ReplicaRecord record;
  record.index = 1;
  record.attempt = 2;
  record.restarts = 1;
  record.exit_code = 137;
  seen.job.status.records = {record};
  seen.created = at("2026-01-02T02:30:00Z");
  seen.pods = {kube::pod_with(pod_status)};
  return seen;
}

constexpr const char* kRunning = R"({"phase": "Running", "containerStatuses": [
    {"name": "trainer", "ready": true, "restartCount": 0,
     "state": {"running": {"startedAt": "2026-01-02T03:00:05Z"}}}]})";
constexpr const char* kUnschedulable = R"({"phase": "Pending", "conditions": [
    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
     "message": "0/3 nodes are available: 3 Insufficient cpu."}]})";

TEST(ClusterStatus, has_a_line_for_each_replica) {
  const std::string text = status_text(seen_with(kRunning), at("2026-01-02T03:05:00Z"));
  EXPECT_EQ(text,
            "mnist: Pending\n"
            "  namespace  lab\n"
            "  age        35m\n"
            "  ready      1/2\n"
            "  restarts   1 of 6\n"
            "  progress   worker 1/2 ready, 1 restart\n"
            "\n"
            "  REPLICA   STATE    READY  RESTARTS  LAST EXIT  AGE  NODE\n"
            "  worker-0  no pod   -      0         -          -    -\n"
            "  worker-1  running  yes    1         137        5m   node-1\n"
            "\n"
            "  Accepted (Valid): the manifest is fine\n");
}

TEST(ClusterStatus, shows_what_a_training_has_come_to_as_muster_run_does) {
  ClusterJob seen = seen_with(kRunning);
  seen.job.training = {{"data", {{"validation", Json::object()}, {"test", Json::object()}}}};
  api::JobStatus& status = seen.job.status;
  status.conditions.push_back({"Succeeded", true, "ChiefSucceeded", "chief-0 succeeded", {}});
  status.start_time = at("2026-01-02T03:00:00Z");
  status.completion_time = at("2026-01-02T03:02:05Z");
  status.results = Json::parse(R"({
      "step": 1564, "epochs": 2, "trainLoss": 0.125, "trainAccuracy": 1,
      "validation": {"loss": 0.25, "accuracy": 0.9751}, "test": {"error": "no such file"},
      "trainSeconds": 12.5, "weightsDigest": "4be3", "checkpoint": "/muster/c", "model": "/muster/m",
      "onnx": "/muster/o",
      "stoppedEarly": true,
      "best": {"metric": "validationLoss", "value": 0.25, "step": 1564, "epoch": 2}})");
  const std::string rows =
      "  steps                1,564\n"
      "  epochs               2\n"
      "  stopped early        the best validationLoss, 0.25, was after epoch 2, at step 1,564\n"
      "  training loss        0.125\n"
      "  training accuracy    1.0000\n"
      "  validation accuracy  0.9751\n"
      "  test data            not evaluated: no such file\n"
      "  training time        12.5 s\n"
      "  weights (SHA-256)    4be3\n"
      "  checkpoint           /muster/c\n"
      "  model                /muster/m\n"
      "  model as ONNX        /muster/o\n";
  EXPECT_THAT(status_text(seen, at("2026-01-02T03:05:00Z")), HasSubstr("\n\n" + rows + "\n"));
  const Json summary = status_json(seen)["summary"];
  EXPECT_EQ(summary["validationLoss"], 0.25);
  EXPECT_EQ(summary["wallSeconds"], 125.0);
  EXPECT_EQ(summary_text("mnist", summary),
            "mnist: Succeeded after 2:05\n" + rows.substr(0, rows.size() - 1));
  EXPECT_TRUE(status_json(seen_with(kRunning))["summary"].is_null());

  status.results["test"] = {{"loss", 0.5}, {"balancedAccuracy", 0.5}};
  const Json of_all = status_json(seen)["summary"];
  EXPECT_EQ(of_all["testBalancedAccuracy"], 0.5);
  EXPECT_TRUE(of_all["testAccuracy"].is_null());
  EXPECT_THAT(summary_rows(of_all), HasSubstr("  validation accuracy     0.9751\n"
                                              "  test balanced accuracy  0.5000\n"));
}

TEST(ClusterStatus, says_that_no_operator_looks_at_a_job) {
  const auto text = [](int64_t seen_generation, const char* changed) {
    ClusterJob seen = seen_with(kRunning);
    seen.job.generation = 2;
    seen.job.status.observed_generation = seen_generation;
    seen.changed = at(changed);
    return status_text(seen, at("2026-01-02T03:05:00Z"));
  };
  const char* long_ago = "2026-01-02T03:04:50Z";
  EXPECT_THAT(text(0, long_ago), HasSubstr("\n  no operator has looked at this job: is one"));
  EXPECT_THAT(text(1, long_ago),
              HasSubstr("no operator has looked at this job since its manifest was changed"));
  EXPECT_THAT(text(2, long_ago), Not(HasSubstr("no operator")));
  EXPECT_THAT(text(0, "2026-01-02T03:04:51Z"), Not(HasSubstr("no operator"))) << "it may yet";
}

TEST(ClusterStatus, says_how_old_it_is_until_the_job_has_finished) {
  ClusterJob seen = seen_with(kRunning);
  seen.status_written = at("2026-01-02T03:00:00Z");
  const api::Time now = at("2026-01-02T03:05:00Z");
  EXPECT_THAT(status_text(seen, now), HasSubstr("as of      5m ago, when the operator wrote"));
  EXPECT_EQ(status_json(seen)["asOf"], "2026-01-02T03:00:00.000Z");
  seen.job.status.conditions.push_back({"Finished", true, "Finished", "", now});
  EXPECT_THAT(status_text(seen, now), Not(HasSubstr("as of")));
}

TEST(ChangedOf, is_the_last_write_but_of_status) {
  const Json object = Json::parse(R"({"metadata": {
      "creationTimestamp": "2026-01-02T03:00:00Z", "managedFields": [
        {"manager": "muster", "operation": "Apply", "time": "2026-01-02T03:01:00Z"},
        {"manager": "muster-operator", "subresource": "status", "time": "2026-01-02T03:02:00Z"}]}})");
  EXPECT_EQ(changed_of(object), at("2026-01-02T03:01:00Z"));
  EXPECT_EQ(status_written_of(object), at("2026-01-02T03:02:00Z"));
  EXPECT_EQ(changed_of({{"metadata", {{"creationTimestamp", "2026-01-02T03:00:00Z"}}}}),
            at("2026-01-02T03:00:00Z"));
  EXPECT_EQ(changed_of({{"metadata", {{"name", "mnist"}}}}), std::nullopt);
}

TEST(ClusterStatus, says_why_a_replica_is_pending) {
  EXPECT_THAT(status_text(seen_with(kUnschedulable), at("2026-01-02T03:05:00Z")),
              HasSubstr("\n  worker-1: Unschedulable: 0/3 nodes are available: 3 Insufficient "
                        "cpu.\n"));
}

TEST(ClusterStatus, says_that_a_job_is_refused) {
  ClusterJob seen = seen_with(kRunning);
  seen.job.status.conditions = {{"Accepted", false, "InvalidTemplate", "no such volume", {}}};
  EXPECT_THAT(status_text(seen, at("2026-01-02T03:05:00Z")),
              HasSubstr("\n  not Accepted (InvalidTemplate): no such volume\n"));
}

TEST(ClusterStatus, shows_the_newest_pod_of_a_replica) {
  ClusterJob seen = seen_with(kRunning);
  kube::Pod old = kube::pod_with(kUnschedulable);
  old.meta.labels["muster.dev/attempt"] = "1";
  seen.pods.push_back(old);
  EXPECT_EQ(status_json(seen)["replicas"][1]["state"], "running");
  std::swap(seen.pods[0], seen.pods[1]);
  EXPECT_EQ(status_json(seen)["replicas"][1]["state"], "running");
}

TEST(ClusterStatus, is_json_with_null_for_what_is_not_known) {
  const Json value = status_json(seen_with(kRunning));
  EXPECT_EQ(value["state"], "Pending");
  EXPECT_EQ(value["replicas"][0]["node"], nullptr);
  EXPECT_EQ(value["replicas"][1]["node"], "node-1");
  EXPECT_EQ(value["replicas"][1]["exitCode"], 137);
  EXPECT_EQ(value["replicas"][1]["created"], "2026-01-02T03:00:00.000Z");
}

TEST(JobsTable, has_a_line_for_each_job) {
  const Json job = {
      {"metadata",
       {{"name", "mnist"}, {"namespace", "lab"}, {"creationTimestamp", "2026-01-02T03:00:00Z"}}},
      {"status",
       {{"replicaStatuses", {{"worker", {{"ready", 1}, {"active", 2}}}}},
        {"progress", {{"step", 12}, {"totalSteps", 50}}},
        {"restarts", 3},
        {"conditions", {{{"type", "Running"}, {"status", "True"}}}}}}};
  const Json fresh = {{"metadata", {{"name", "a"}, {"namespace", "default"}}}};
  EXPECT_EQ(jobs_table({job, fresh}, true, at("2026-01-02T05:00:00Z")),
            "NAMESPACE  NAME   STATE    READY  STEPS  RESTARTS  AGE\n"
            "lab        mnist  Running  1/2    12/50  3         2h\n"
            "default    a      Pending  -      -      0         -\n");
}

TEST(AgeText, keeps_to_one_unit) {
  const api::Time now = at("2026-01-10T00:00:00Z");
  EXPECT_EQ(age_text(std::nullopt, now), "-");
  EXPECT_EQ(age_text(now + std::chrono::seconds(5), now), "0s");
  EXPECT_EQ(age_text(now - std::chrono::seconds(119), now), "119s");
  EXPECT_EQ(age_text(now - std::chrono::seconds(120), now), "2m");
  EXPECT_EQ(age_text(now - std::chrono::hours(47), now), "47h");
  EXPECT_EQ(age_text(now - std::chrono::hours(48), now), "2d");
}

}  // namespace
}  // namespace muster::cmd
