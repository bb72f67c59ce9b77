#include "operator/cmd/operator/job_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace muster::cmd {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

const api::Time kScraped{std::chrono::hours(24 * 365)};

api::Condition true_condition(const std::string& type, const std::string& reason) {
  api::Condition condition;
  condition.type = type;
  condition.status = true;
  condition.reason = reason;
  condition.last_transition = kScraped - 90s;
  return condition;
}

class JobMetricsTest : public testing::Test {
 protected:
  void note(const std::string& name, const api::JobStatus& status) {
    states_.note({"uid of " + name, "lab", name, kScraped - 300s}, status, kScraped);
  }
  std::string text(const std::vector<std::string>& refused = {}) {
    std::ostringstream out;
    write_job_metrics(out, states_, ledgers_, refused, kScraped);
    return out.str();
  }
  kube::JobStates states_;
  controller::Ledgers ledgers_;
};

TEST_F(JobMetricsTest, NameTheJobItsStateAndItsReplicas) {
  api::JobStatus status;
  status.conditions = {true_condition("Running", "EnoughReplicasReady")};
  status.replica_statuses[api::Role::worker] = {.ready = 2, .restarts = 5};
  status.restart_reasons[api::Role::worker] = {{"NodeLost", 4}, {"ReplicaFailed", 1}};
  status.records.resize(3);
  for (api::ReplicaRecord& record : status.records) record.role = api::Role::worker;
  status.progress = {{"step", 7}};
  note("mnist", status);
  const std::string job = "{namespace=\"lab\",trainingjob=\"mnist\",";
  EXPECT_THAT(text(), HasSubstr("muster_jobs{namespace=\"lab\",state=\"Running\"} 1\n"));
  EXPECT_THAT(text(), HasSubstr("muster_jobs{namespace=\"lab\",state=\"Failed\"} 0\n"));
  for (const std::string& line :
       {std::string("muster_job_step{namespace=\"lab\",trainingjob=\"mnist\"} 7"),
        "muster_job_state" + job + "state=\"Running\"} 1",
        "muster_job_replicas_wanted" + job + "role=\"worker\"} 3",
        "muster_job_replicas_ready" + job + "role=\"worker\"} 2",
        "muster_job_restarts" + job + "role=\"worker\"} 5",
        "muster_job_restarts_by_reason" + job + "role=\"worker\",reason=\"NodeLost\"} 4"})
    EXPECT_THAT(text(), HasSubstr(line + "\n"));
  EXPECT_THAT(text(), Not(HasSubstr("muster_job_waiting_seconds")));
  states_.forget("uid of mnist");
  EXPECT_EQ(text(), "") << "they go with the job";
}

TEST_F(JobMetricsTest, NameWhatAJobWaitsFor) {
  note("new", {});
  api::JobStatus status;
  status.conditions = {true_condition("Suspended", "Queued")};
  note("queued", status);
  const std::string name = "muster_job_waiting_seconds{namespace=\"lab\",trainingjob=";
  EXPECT_THAT(text(), HasSubstr(name + "\"queued\",cause=\"Queued\"} 90\n"));
  EXPECT_THAT(text(), HasSubstr(name + "\"new\",cause=\"Starting\"} 300\n"));
}

TEST_F(JobMetricsTest, NameADeadlineAndWhenTheJobWillEnd) {
  api::JobStatus status;
  status.progress = {{"step", 7}, {"etaSeconds", 600.5}};
  kube::JobStates::Job job{"1", "lab", "mnist", kScraped, 3600};
  states_.note(job, status, kScraped);
  EXPECT_THAT(text(), Not(HasSubstr("muster_job_deadline"))) << "it has not begun";
  status.start_time = api::Time{1000s};
  states_.note(job, status, kScraped);
  const std::string labels = "{namespace=\"lab\",trainingjob=\"mnist\"}";
  EXPECT_THAT(text(), HasSubstr("muster_job_deadline_timestamp_seconds" + labels + " 4600\n"));
  EXPECT_THAT(text(), HasSubstr("muster_job_eta_seconds" + labels + " 600.5\n"));
}

TEST_F(JobMetricsTest, NameTheEndOfAJobAndItsExitCode) {
  api::JobStatus status;
  status.conditions = {true_condition("Failed", "PermanentExitCode"),
                       true_condition("Finished", "PermanentExitCode")};
  status.completion_time = kScraped - 1min;
  status.records.resize(1);
  status.records[0].failed = true;
  status.records[0].exit_code = 90;
  note("diverged", status);
  EXPECT_THAT(text(), HasSubstr("muster_job_end{namespace=\"lab\",trainingjob=\"diverged\",state="
                                "\"Failed\",reason=\"PermanentExitCode\",exit_code=\"90\"} 1\n"));
  EXPECT_THAT(text(), Not(HasSubstr("muster_job_state{")));
}

TEST_F(JobMetricsTest, NameWhatTheTimeWasSpentOn) {
  api::TrainingJob job;
  job.name_space = "lab";
  job.name = "mnist";
  job.created = kScraped;
  plan::Plan plan;
  plan.use = TimeUse::pulling;
  ledgers_.look(job, {}, plan, kScraped, {});
  ledgers_.look(job, {}, plan, kScraped + 7s, controller::Ledgers::Moment{} + 7s);
  EXPECT_THAT(text(), HasSubstr("# TYPE muster_job_time_seconds_total counter\n"));
  EXPECT_THAT(text(), HasSubstr("muster_job_time_seconds_total{namespace=\"lab\",trainingjob="
                                "\"mnist\",use=\"pulling\"} 7\n"));
  const std::string name = "muster_namespace_time_seconds_total{namespace=\"lab\",use=";
  EXPECT_THAT(text(), HasSubstr(name + "\"pulling\"} 7\n"));
  EXPECT_THAT(text(), HasSubstr(name + "\"computing\"} 0\n"));
  ledgers_.forget("lab/mnist", {});
  EXPECT_THAT(text(), Not(HasSubstr("muster_job_time_seconds_total")));
}

TEST_F(JobMetricsTest, NameTfJobsThatWereRefused) {
  EXPECT_THAT(text({"lab/wrong"}),
              HasSubstr("muster_tfjob_refused{namespace=\"lab\",tfjob=\"wrong\"} 1\n"));
}

// A scrape of 1,000 jobs with 10,000 replicas.
TEST_F(JobMetricsTest, OfManyJobsAreSmall) {
  api::JobStatus status;
  for (const api::Role role : api::kRoles) status.replica_statuses[role].ready = 3;
  for (int i = 0; i < 1000; ++i) note("a-job-with-a-long-name-" + std::to_string(i), status);
  EXPECT_LT(text().size(), 3'000'000u);
}

}  // namespace
}  // namespace muster::cmd
