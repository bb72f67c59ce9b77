#include <gmock/gmock.h>

#include "common/net/http_get.h"
#include "common/system/file.h"
#include "tests/integration/trainer/job.h"
#include "tests/unit/common/documented_metrics.h"
#include "tests/unit/common/net/listener.h"

namespace muster::integration {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

constexpr std::chrono::seconds kPatience(30);
constexpr size_t kMost = 1 << 20;

// Returns whether only other jobs have the metric: those on GPUs, of a collective, with backup
// workers or second copies.
bool is_of_other_jobs(const std::string& name) {
  return name.starts_with("muster_trainer_gpu_") || name.starts_with("muster_trainer_group_");
}

// A job that trains for as long as the test lets it, each replica with an address of its own.
class MetricsTest : public testing::Test {
 protected:
  MetricsTest()
      : job_("metrics",
             small_training("checkpoint: {everySteps: 200, keep: 2}\n"
                            "synchronization: {policy: async}\n",
                            100000),
             1, 1, true) {
    for (const auto& [role, index] : kReplicas) {
      addresses_[role] = free_address();
      job_.start(role, index, {{"MUSTER_HTTP_ADDRESS", addresses_[role]}});
    }
  }
  ~MetricsTest() override {
    for (const auto& [role, index] : kReplicas) job_.kill(role, index);
  }
  // "" where nobody answers yet.
  std::string ask(const std::string& role, const std::string& path) {
    try {
      return http_get(addresses_.at(role), path, kPatience, kMost);
    } catch (const Unavailable&) {
      return "";
    }
  }
  bool shows(const std::string& role, const std::string& what) {
    return eventually([&] { return ask(role, "/metrics").find(what) != std::string::npos; });
  }

  inline static const std::vector<Job::Replica> kReplicas = {
      {"ps", 0}, {"chief", 0}, {"worker", 0}, {"evaluator", 0}};
  Job job_;
  std::map<std::string, std::string> addresses_;
};

TEST_F(MetricsTest, OfARealRunAreWhatTheReferenceSays) {
  ASSERT_TRUE(shows("chief", "muster_trainer_training_metric{")) << job_.log("chief", 0);
  ASSERT_TRUE(shows("evaluator", "muster_trainer_validation_loss{")) << job_.log("evaluator", 0);
  const MetricShapes documented =
      documented_metrics(read_file(MUSTER_SOURCE_DIR "/docs/reference/metrics.md"));
  std::set<std::string> served;
  for (const auto& [role, index] : kReplicas) {
    const auto shapes = served_metrics(ask(role, "/metrics"), {"role", "index"});
    EXPECT_FALSE(shapes.empty());
    for (const auto& [name, shape] : shapes) {
      served.insert(name);
      ASSERT_TRUE(documented.contains(name)) << name << " of " << role << " is not in the page";
      EXPECT_EQ(shape, documented.at(name)) << name << " of " << role;
    }
  }
  for (const auto& [name, shape] : documented) {
    const bool ours = name.starts_with("muster_trainer_") || name.starts_with("process_");
    EXPECT_TRUE(!ours || is_of_other_jobs(name) || served.contains(name)) << name;
  }
  EXPECT_TRUE(served.contains("muster_trainer_group_staleness"));
}

TEST_F(MetricsTest, AnEvaluatorShowsItsResultsWhileTheJobTrains) {
  ASSERT_TRUE(shows("evaluator", "muster_trainer_validation_loss{")) << job_.log("evaluator", 0);
  const std::string metrics = ask("evaluator", "/metrics");
  EXPECT_THAT(metrics,
              ContainsRegex("muster_trainer_validation_metric\\{.*name=\"accuracy\"\\} [01]"));
  EXPECT_THAT(metrics, ContainsRegex("muster_trainer_validation_step\\{.*\\} [1-9]"));
  const Json progress = Json::parse(ask("evaluator", "/progress"));
  EXPECT_TRUE(progress["metrics"].contains("validationLoss")) << progress;
  EXPECT_TRUE(progress["metrics"].contains("validationAccuracy")) << progress;
}

// Prometheus must see these before the first event.
TEST_F(MetricsTest, CountFromZero) {
  ASSERT_TRUE(shows("ps", "muster_trainer_step{"));
  ASSERT_TRUE(shows("chief", "muster_trainer_step{"));
  EXPECT_THAT(ask("ps", "/metrics"),
              ContainsRegex("muster_trainer_pushes_conflicting_total\\{.*\\} 0\n"));
  EXPECT_THAT(ask("chief", "/metrics"),
              ContainsRegex("muster_trainer_checkpoints_failed_total\\{.*\\} 0\n"));
  EXPECT_THAT(ask("chief", "/metrics"),
              ContainsRegex("muster_trainer_states_differing_total\\{.*\\} 0\n"));
}

}  // namespace
}  // namespace muster::integration
