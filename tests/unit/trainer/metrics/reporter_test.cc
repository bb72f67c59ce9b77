#include "trainer/metrics/reporter.h"

#include <cmath>
#include <set>
#include <sstream>
#include <thread>

#include "common/error.h"
#include "common/net/http_get.h"
#include "common/system/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/common/documented_metrics.h"
#include "tests/unit/common/net/listener.h"
#include "trainer/metrics/names.h"

namespace muster::metrics {
namespace {

using testing::Contains;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

constexpr std::chrono::seconds kPatience(30);

TEST(Reporter, ServesMetricsHealthAndProgress) {
  const std::string address = free_address();
  Reporter reporter(address, "worker", 2, 3);
  Progress progress;
  progress.state = "training";
  progress.step = 41;
  progress.loss = 0.5;
  progress.training = {{"accuracy", 0.75}};
  reporter.update(progress);
  EXPECT_EQ(http_get(address, "/healthz", kPatience), "ok\n");
  const Json json = Json::parse(http_get(address, "/progress", kPatience));
  Json expected = progress.json("worker", 2);
  expected["restarts"] = 3;
  EXPECT_EQ(json, expected);
  reporter.resumed("from \"another\" job");
  expected["resumed"] = "from \"another\" job";
  reporter.met_request("now", 7, "/muster/checkpoints/ckpt-7-g1");
  expected["requestedCheckpoint"] = {
      {"request", "now"}, {"step", 7}, {"checkpoint", "/muster/checkpoints/ckpt-7-g1"}};
  EXPECT_EQ(Json::parse(http_get(address, "/progress", kPatience)), expected);
  const std::string metrics = http_get(address, "/metrics", kPatience);
  EXPECT_THAT(metrics, HasSubstr("# TYPE muster_trainer_step gauge\n"));
  EXPECT_THAT(metrics, HasSubstr("muster_trainer_restarts{index=\"2\",role=\"worker\"} 3\n"));
  EXPECT_THAT(metrics, ContainsRegex("muster_trainer_step\\{index=\"2\",role=\"worker\"\\} 41\n"));
  EXPECT_THAT(metrics,
              ContainsRegex("muster_trainer_training_metric\\{.*name=\"accuracy\".*\\} 0.75\n"));
  EXPECT_THAT(metrics, ContainsRegex("process_open_fds\\{index=\"2\",role=\"worker\"\\} [0-9]+\n"));
}

TEST(Reporter, WorksWithoutAnAddress) {
  Reporter reporter("", "chief", 0);
  Progress progress;
  progress.step = 3;
  reporter.update(progress);
  EXPECT_EQ(reporter.snapshot().step, 3u);
  EXPECT_THAT(reporter.metrics_text(), ContainsRegex("muster_trainer_step\\{.*\\} 3\n"));
}

// Returns the samples of our own metrics that are 0, without their labels.
std::set<std::string> zeros(const std::string& role, int index) {
  const Reporter reporter("", role, index);
  std::istringstream lines(reporter.metrics_text());
  std::set<std::string> found;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("muster_trainer_") && line.ends_with(" 0"))
      found.insert(line.substr(15, line.find('{') - 15));
  return found;
}

TEST(Reporter, CountsFromZeroWhateverMayHappenToItsReplica) {
  EXPECT_THAT(zeros("ps", 1),
              IsSupersetOf({"pushes_stale_total", "pushes_conflicting_total", "commits_total",
                            "states_differing_total", "staleness_count", "shards_serving"}));
  const auto chief = zeros("chief", 0);
  EXPECT_THAT(chief, IsSupersetOf({"checkpoints_total", "checkpoints_failed_total",
                                   "checkpoint_seconds_count", "step_seconds_count",
                                   "states_differing_total", "input_wait_seconds_total"}));
  EXPECT_EQ(zeros("master", 0), chief);
  EXPECT_EQ(zeros("worker", 0), chief) << "it leads where there is no chief";
  EXPECT_THAT(zeros("worker", 1), Contains("step_seconds_count"));
  EXPECT_THAT(zeros("worker", 1), Not(Contains("checkpoints_total")));
  EXPECT_THAT(zeros("evaluator", 0), Not(Contains("step_seconds_count")));
}

TEST(Reporter, ShowsNoNumberThatNobodyHasMeasured) {
  const Reporter reporter("", "chief", 0);
  for (const char* name : {"muster_trainer_loss", "_metric{", "validation_", "_group_", "_gpu_"})
    EXPECT_THAT(reporter.metrics_text(), Not(HasSubstr(name)));
}

TEST(Reporter, HasOneNameForOneKindOfThing) {
  Reporter reporter("", "chief", 0);
  Progress progress;
  progress.training = {{"accuracy", 0.5}};
  progress.validation = {{"loss", 0.25}, {"balancedAccuracy", 0.75}};
  progress.validation_step = 40;
  progress.group = {{"stragglerRank", 2}, {"leftOut", 3}};
  reporter.update(progress);
  const std::string text = reporter.metrics_text();
  for (const char* line :
       {"training_metric\\{.*name=\"accuracy\"\\} 0.5\n", "validation_loss\\{[^,]*,[^,]*\\} 0.25\n",
        "validation_metric\\{.*name=\"balancedAccuracy\"\\} 0.75\n", "validation_step\\{.*\\} 40\n",
        "group_straggler_rank\\{.*\\} 2\n", "group_left_out\\{.*\\} 3\n"})
    EXPECT_THAT(text, ContainsRegex(std::string("muster_trainer_") + line));
  const Json expected = {{"accuracy", 0.5},
                         {"leftOut", 3.0},
                         {"stragglerRank", 2.0},
                         {"validationBalancedAccuracy", 0.75},
                         {"validationLoss", 0.25}};
  EXPECT_EQ(progress.json("chief", 0)["metrics"], expected);
}

TEST(Reporter, NamesAnAddressThatIsInUse) {
  const std::string address = free_address();
  const Reporter first(address, "worker", 0);
  try {
    const Reporter second(address, "worker", 1);
    ADD_FAILURE() << "no error";
  } catch (const Unavailable& error) {
    EXPECT_THAT(error.what(), HasSubstr(address));
  }
}

TEST(Reporter, CountsGaugesAndObserves) {
  Reporter reporter("", "ps", 0);
  reporter.count("stale_pushes");
  reporter.count("stale_pushes_total", 2);
  reporter.gauge("queue", 5);
  reporter.gauge("queue", 4);
  reporter.observe("checkpoint", 0.02);
  reporter.observe("checkpoint", 2000);
  const std::string text = reporter.metrics_text();
  EXPECT_THAT(text, ContainsRegex("muster_trainer_stale_pushes_total\\{.*\\} 3\n"));
  EXPECT_THAT(text, ContainsRegex("muster_trainer_queue\\{.*\\} 4\n"));
  EXPECT_THAT(text, ContainsRegex("muster_trainer_checkpoint_seconds_count\\{.*\\} 2\n"));
  EXPECT_THAT(text,
              ContainsRegex("muster_trainer_checkpoint_seconds_bucket\\{.*le=\"0.03125\"\\} 1\n"));
}

TEST(Reporter, TakesManyDurationsAtOnce) {
  Reporter reporter("", "chief", 0);
  Durations durations;
  for (const double seconds : {0.00001, 0.00002, 0.5, 1000.0}) durations.add(seconds);
  reporter.observe("step", durations);
  reporter.observe("step", durations);
  const std::string text = reporter.metrics_text();
  EXPECT_THAT(text, HasSubstr("# TYPE muster_trainer_step_seconds histogram\n"));
  EXPECT_THAT(text, ContainsRegex("step_seconds_bucket\\{.*le=\"1.52587890625e-05\"\\} 2\n"));
  EXPECT_THAT(text, ContainsRegex("step_seconds_bucket\\{.*le=\"3.0517578125e-05\"\\} 4\n"));
  EXPECT_THAT(text, ContainsRegex("step_seconds_bucket\\{.*le=\"256\"\\} 6\n"));
  EXPECT_THAT(text, ContainsRegex("step_seconds_bucket\\{.*le=\"\\+Inf\"\\} 8\n"));
  EXPECT_THAT(text, ContainsRegex("step_seconds_sum\\{.*\\} 2001.0000"));
}

TEST(Reporter, ShowsOneState) {
  Reporter reporter("", "chief", 0);
  Progress progress;
  progress.state = "training";
  reporter.update(progress);
  const std::string text = reporter.metrics_text();
  EXPECT_THAT(text, ContainsRegex("muster_trainer_state\\{.*state=\"starting\"\\} 0\n"));
  EXPECT_THAT(text, ContainsRegex("muster_trainer_state\\{.*state=\"training\"\\} 1\n"));
  EXPECT_THAT(text, ContainsRegex("muster_trainer_state\\{.*state=\"done\"\\} 0\n"));
}

TEST(Reporter, ShowsALossThatIsNoNumber) {
  Reporter reporter("", "chief", 0);
  Progress progress;
  progress.loss = std::nan("");
  reporter.update(progress);
  EXPECT_THAT(reporter.metrics_text(), ContainsRegex("muster_trainer_loss\\{.*\\} Nan\n"));
}

TEST(Reporter, TakesUpdatesFromManyThreads) {
  Reporter reporter("", "worker", 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        reporter.count("pushes");
        reporter.observe("step", 0.001 * i);
        reporter.update(Progress{});
        reporter.metrics_text();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(reporter.metrics_text(), ContainsRegex("muster_trainer_pushes_total\\{.*\\} 800\n"));
}

TEST(MetricName, EachIsInTheReferenceWithItsType) {
  const MetricShapes documented =
      documented_metrics(read_file(MUSTER_SOURCE_DIR "/docs/reference/metrics.md"));
  std::set<std::string> names;
  for (const Description& metric : descriptions()) {
    const std::string name = "muster_trainer_" + std::string(metric.name);
    names.insert(name);
    ASSERT_TRUE(documented.contains(name)) << name;
    const char* const type = metric.kind == Kind::gauge     ? "gauge"
                             : metric.kind == Kind::counter ? "counter"
                                                            : "histogram";
    EXPECT_EQ(documented.at(name).type, type) << name;
  }
  for (const auto& [name, shape] : documented) {
    const bool is_mine = name.starts_with("muster_trainer_");
    EXPECT_TRUE(!is_mine || names.contains(name)) << name;
  }
}

TEST(MetricName, IsOneThatPrometheusTakes) {
  EXPECT_EQ(metric_name("step", ""), "muster_trainer_step");
  EXPECT_EQ(metric_name("pushes_total", "_total"), "muster_trainer_pushes_total");
  EXPECT_EQ(metric_name("a b/c-\xc3\xa4", "_total"), "muster_trainer_a_b_c____total");
  EXPECT_EQ(help_of("muster_trainer_step"), "Committed global steps.");
  EXPECT_EQ(help_of("muster_trainer_other"), "other");
}

}  // namespace
}  // namespace muster::metrics
