#include "operator/kube/cluster/job_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::kube {
namespace {

const api::Time kMadeAt{std::chrono::seconds(1000)}, kChangedAt{std::chrono::seconds(2000)};

api::Condition condition_with(const std::string& type, bool status, const std::string& reason) {
  api::Condition condition;
  condition.type = type;
  condition.status = status;
  condition.reason = reason;
  condition.last_transition = kChangedAt;
  return condition;
}

api::JobStatus status_with_all(std::vector<api::Condition> conditions,
                               const std::string& cause = "") {
  api::JobStatus status;
  status.conditions = std::move(conditions);
  status.cause = cause;
  return status;
}

JobView shown_job(const api::JobStatus& status) {
  return view_of("lab", "mnist", kMadeAt, status);
}

TEST(JobView, SaysWhatAJobWaitsForAndSinceWhen) {
  struct Case {
    api::JobStatus status;
    const char* state;
    const char* cause;
  };
  const api::Condition not_ready = condition_with("Running", false, "ReplicasNotReady");
  for (const Case& one : {
           Case{status_with_all({condition_with("Suspended", true, "Queued")}), "Queued", "Queued"},
           Case{status_with_all({condition_with("Suspended", true, "Preempted")}), "Preempted",
                "Preempted"},
           Case{status_with_all({condition_with("Accepted", false, "InvalidTemplate"), not_ready}),
                "NotAccepted", "InvalidTemplate"},
           Case{status_with_all({condition_with("Stalled", true, "StorageHangs")}), "Stalled",
                "StorageHangs"},
           Case{status_with_all({condition_with("Running", false, "QuotaExceeded")}), "Pending",
                "QuotaExceeded"},
           Case{status_with_all({not_ready}, "worker-1: Unschedulable: 0/3 nodes are available: x"),
                "Pending", "Unschedulable"},
           Case{status_with_all({not_ready}, "worker-1: ImagePullBackOff"), "Pending",
                "ImagePullBackOff"},
           Case{status_with_all({not_ready}, "something else: is wrong here"), "Pending",
                "Starting"},
           Case{status_with_all({not_ready, condition_with("Restarting", true, "ReplicaFailed")}),
                "Restarting", "Restarting"},
           Case{status_with_all({not_ready, condition_with("Accepted", false, "Unknown")},
                                "error looking up service account"),
                "Pending", "NotChecked"},
       }) {
    const JobView found = shown_job(one.status);
    EXPECT_EQ(found.state, one.state);
    EXPECT_EQ(found.cause, one.cause);
    EXPECT_EQ(found.waits_since, kChangedAt) << one.cause;
  }
  api::JobStatus lost = status_with_all({not_ready});
  lost.progress = {{"step", 28}};
  EXPECT_EQ(shown_job(lost).cause, "Recovering");
  EXPECT_EQ(shown_job({}).cause, "Starting");
  EXPECT_EQ(shown_job({}).waits_since, kMadeAt);
}

TEST(JobView, AJobThatTrainsOrMayNotTrainWaitsForNothing) {
  EXPECT_EQ(shown_job(status_with_all({condition_with("Running", true, "AllReplicasReady")})).cause,
            "");
  EXPECT_EQ(shown_job(status_with_all({condition_with("Suspended", true, "Suspended")})).cause, "");
  EXPECT_EQ(
      shown_job(status_with_all({condition_with("SuccessCriteriaMet", true, "ChiefSucceeded")}))
          .cause,
      "");
}

TEST(JobView, CountsReplicasThatAreWantedAndReady) {
  api::JobStatus status = status_with_all({condition_with("Running", true, "EnoughReplicasReady")});
  status.group = {{api::Role::chief, 1}, {api::Role::worker, 3}};
  status.replica_statuses[api::Role::worker] = {.ready = 1, .active = 1, .restarts = 4};
  status.replica_statuses[api::Role::chief] = {.ready = 1, .active = 1};
  for (int index = 0; index < 5; ++index) {
    api::ReplicaRecord record;
    record.role = api::Role::worker;
    record.index = index;  // 3 and 4 were scaled away
    record.succeeded = index == 0;
    status.records.push_back(record);
  }
  api::ReplicaRecord chief;
  chief.role = api::Role::chief;
  status.records.push_back(chief);
  const auto replicas = shown_job(status).replicas;
  EXPECT_EQ(replicas.at(api::Role::worker),
            (JobView::Replicas{.wanted = 2, .ready = 1, .restarts = 4}));
  EXPECT_EQ(replicas.at(api::Role::chief), (JobView::Replicas{.wanted = 1, .ready = 1}));
}

TEST(JobView, SaysWhyAJobHasEnded) {
  api::JobStatus status = status_with_all({condition_with("Failed", true, "PermanentExitCode"),
                                           condition_with("Finished", true, "PermanentExitCode")});
  for (const auto& [failed, code] :
       {std::pair(true, 137), std::pair(true, 90), std::pair(true, 1), std::pair(false, 78)}) {
    api::ReplicaRecord record;
    record.failed = failed;
    record.exit_code = code;
    status.records.push_back(record);
  }
  EXPECT_EQ(shown_job(status).state, "Failed");
  EXPECT_EQ(shown_job(status).end_reason, "PermanentExitCode");
  EXPECT_EQ(shown_job(status).exit_code, 90)
      << "with the others a replica would have started again";
  status.records.clear();
  EXPECT_FALSE(shown_job(status).exit_code) << "a deadline, for example";
}

}  // namespace
}  // namespace muster::kube
