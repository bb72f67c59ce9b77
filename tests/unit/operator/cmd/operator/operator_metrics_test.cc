#include "operator/cmd/operator/operator_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

namespace muster::cmd {
namespace {

using namespace std::chrono_literals;
using controller::Monitor;
using ::testing::HasSubstr;

class OperatorMetricsTest : public testing::Test {
 protected:
  std::string text() const { return prometheus::TextSerializer().Serialize(registry_.Collect()); }
  // workqueue_adds_total, with so many jobs that wait.
  std::string adds(int waiting_jobs) {
    metrics_.update(waiting_jobs, true);
    const std::string name = "workqueue_adds_total{name=\"trainingjob\"} ", all = text();
    const size_t at = all.find(name) + name.size();
    return all.substr(at, all.find('\n', at) - at);
  }

  prometheus::Registry registry_;
  OperatorMetrics metrics_{registry_};
};

TEST_F(OperatorMetricsTest, CountPassesUnderTheNamesOfEveryController) {
  metrics_.began("lab/a", 20ms);
  metrics_.ended("lab/a", Monitor::Result::done);
  metrics_.began("lab/b", 2s);
  metrics_.ended("lab/b", Monitor::Result::later);
  metrics_.began("lab/a", 0ms);
  metrics_.ended("lab/a", Monitor::Result::error);
  const std::string passes =
      "controller_runtime_reconcile_total{controller=\"trainingjob\",result=";
  for (const std::string& line :
       {std::string("workqueue_retries_total{name=\"trainingjob\"} 1"),
        std::string("workqueue_queue_duration_seconds_count{name=\"trainingjob\"} 3"),
        std::string("workqueue_queue_duration_seconds_bucket{name=\"trainingjob\",le=\"0.05\"} 2"),
        std::string("workqueue_work_duration_seconds_count{name=\"trainingjob\"} 3"),
        passes + "\"success\"} 1", passes + "\"requeue_after\"} 1", passes + "\"error\"} 1",
        std::string("controller_runtime_reconcile_errors_total{controller=\"trainingjob\"} 1"),
        std::string(
            "controller_runtime_reconcile_time_seconds_count{controller=\"trainingjob\"} 3"),
        std::string("controller_runtime_active_workers{controller=\"trainingjob\"} 0")}) {
    EXPECT_THAT(text(), HasSubstr(line + "\n"));
  }
}

TEST_F(OperatorMetricsTest, CountWhatIsAddedToTheQueueWhetherOrNotItIsTaken) {
  EXPECT_EQ(adds(0), "0");
  EXPECT_EQ(adds(2), "2");
  EXPECT_EQ(adds(2), "2");
  metrics_.began("lab/a", 0ms);
  EXPECT_EQ(adds(1), "2");
  metrics_.ended("lab/a", Monitor::Result::done);
  EXPECT_EQ(adds(0), "2") << "a counter never falls: one was about to be taken";
  metrics_.began("lab/b", 0ms);
  EXPECT_EQ(adds(3), "5");
}

TEST_F(OperatorMetricsTest, ShowPassesUnderWayWithTheirTime) {
  const auto gauge = [&](const std::string& name) {
    metrics_.update(0, true);
    for (const prometheus::MetricFamily& family : registry_.Collect()) {
      if (family.name == name) return family.metric.at(0).gauge.value;
    }
    ADD_FAILURE() << "no " << name;
    return 0.0;
  };
  EXPECT_EQ(gauge("workqueue_unfinished_work_seconds"), 0);
  metrics_.began("lab/a", 0ms);
  metrics_.began("lab/b", 0ms);
  EXPECT_EQ(gauge("controller_runtime_active_workers"), 2);
  const double longest = gauge("workqueue_longest_running_processor_seconds");
  EXPECT_GT(longest, 0);
  EXPECT_GT(gauge("workqueue_unfinished_work_seconds"), longest);
  metrics_.ended("lab/a", Monitor::Result::done);
  metrics_.ended("lab/b", Monitor::Result::done);
  EXPECT_EQ(gauge("workqueue_longest_running_processor_seconds"), 0);
}

TEST_F(OperatorMetricsTest, CountFromZeroWhateverMayHappen) {
  const std::string passes =
      "controller_runtime_reconcile_total{controller=\"trainingjob\",result=";
  for (const std::string& line :
       {passes + "\"success\"} 0", passes + "\"requeue_after\"} 0", passes + "\"error\"} 0",
        std::string("controller_runtime_reconcile_errors_total{controller=\"trainingjob\"} 0"),
        std::string("muster_restarts_total{reason=\"ReplicaFailed\",role=\"worker\"} 0"),
        std::string("muster_restarts_total{reason=\"NodeLost\",role=\"evaluator\"} 0"),
        std::string("muster_job_first_step_seconds_count 0"),
        std::string("muster_operator_leads 0")}) {
    EXPECT_THAT(text(), HasSubstr(line + "\n"));
  }
  EXPECT_THAT(text(), HasSubstr("muster_operator_memory_limit_bytes "));
}

TEST_F(OperatorMetricsTest, CountTfJobsOfANamespaceFromZero) {
  metrics_.count_tfjob(kube::TfJobReconciler::Count::created, "lab");
  const std::string labels = "{framework=\"tensorflow\",job_namespace=\"lab\"} ";
  EXPECT_THAT(text(), HasSubstr("training_operator_jobs_created_total" + labels + "1\n"));
  EXPECT_THAT(text(), HasSubstr("training_operator_jobs_failed_total" + labels + "0\n"));
}

TEST_F(OperatorMetricsTest, CountRestartsAndFirstSteps) {
  metrics_.update(7, true);
  EXPECT_THAT(text(), HasSubstr("muster_operator_ready 1\n"));
  metrics_.update(7, false);
  EXPECT_THAT(text(), HasSubstr("muster_operator_ready 0\n"));
  metrics_.restarted(api::Role::worker, "OOMKilled", 1);
  metrics_.restarted(api::Role::worker, "OOMKilled", 2);
  metrics_.restarted(api::Role::ps, "ReplicaFailed", 1);
  metrics_.took_first_step(4500ms);
  metrics_.set_leading(true);
  for (const char* line : {"workqueue_depth{name=\"trainingjob\"} 7",
                           "muster_restarts_total{reason=\"OOMKilled\",role=\"worker\"} 3",
                           "muster_restarts_total{reason=\"ReplicaFailed\",role=\"ps\"} 1",
                           "muster_job_first_step_seconds_bucket{le=\"3\"} 0",
                           "muster_job_first_step_seconds_bucket{le=\"5\"} 1",
                           "muster_job_first_step_seconds_sum 4.5", "muster_operator_leads 1"}) {
    EXPECT_THAT(text(), HasSubstr(std::string(line) + "\n"));
  }
  metrics_.set_leading(false);
  EXPECT_THAT(text(), HasSubstr("muster_operator_leads 0\n"));
}

}  // namespace
}  // namespace muster::cmd
