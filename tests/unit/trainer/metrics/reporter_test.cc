#include "trainer/metrics/reporter.h"

#include <cmath>
#include <thread>

#include "common/error.h"
#include "common/net/http_get.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/common/net/listener.h"
#include "trainer/metrics/names.h"

namespace muster::metrics {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr std::chrono::seconds kPatience(30);

TEST(Reporter, ServesMetricsHealthAndProgress) {
  const std::string address = free_address();
  Reporter reporter(address, "worker", 2, 3);
  Progress progress;
  progress.state = "training";
  progress.step = 41;
  progress.loss = 0.5;
  progress.metrics = {{"accuracy", 0.75}};
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
  EXPECT_EQ(metrics, reporter.metrics_text());
  EXPECT_THAT(metrics, HasSubstr("# TYPE muster_trainer_step gauge\n"));
  EXPECT_THAT(metrics, HasSubstr("muster_trainer_restarts{index=\"2\",role=\"worker\"} 3\n"));
  EXPECT_THAT(metrics, ContainsRegex("muster_trainer_step\\{index=\"2\",role=\"worker\"\\} 41\n"));
  EXPECT_THAT(metrics, ContainsRegex("muster_trainer_metric\\{.*name=\"accuracy\".*\\} 0.75\n"));
}

TEST(Reporter, WorksWithoutAnAddress) {
  Reporter reporter("", "chief", 0);
  Progress progress;
  progress.step = 3;
  reporter.update(progress);
  EXPECT_EQ(reporter.snapshot().step, 3u);
  EXPECT_THAT(reporter.metrics_text(), ContainsRegex("muster_trainer_step\\{.*\\} 3\n"));
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
              ContainsRegex("muster_trainer_checkpoint_seconds_bucket\\{.*le=\"0.03\"\\} 1\n"));
}

TEST(Reporter, TakesManyDurationsAtOnce) {
  Reporter reporter("", "chief", 0);
  Durations durations;
  for (const double seconds : {0.00001, 0.00002, 0.5, 1000.0}) durations.add(seconds);
  reporter.observe("step", durations);
  reporter.observe("step", durations);
  const std::string text = reporter.metrics_text();
  EXPECT_THAT(text, HasSubstr("# TYPE muster_trainer_step_seconds histogram\n"));
  EXPECT_THAT(text, ContainsRegex("step_seconds_bucket\\{.*le=\"1e-05\"\\} 2\n"));
  EXPECT_THAT(text, ContainsRegex("step_seconds_bucket\\{.*le=\"3e-05\"\\} 4\n"));
  EXPECT_THAT(text, ContainsRegex("step_seconds_bucket\\{.*le=\"300\"\\} 6\n"));
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

TEST(MetricName, IsOneThatPrometheusTakes) {
  EXPECT_EQ(metric_name("step", ""), "muster_trainer_step");
  EXPECT_EQ(metric_name("pushes_total", "_total"), "muster_trainer_pushes_total");
  EXPECT_EQ(metric_name("a b/c-\xc3\xa4", "_total"), "muster_trainer_a_b_c____total");
  EXPECT_EQ(help_of("muster_trainer_step"), "Committed global steps.");
  EXPECT_EQ(help_of("muster_trainer_other"), "other");
}

}  // namespace
}  // namespace muster::metrics
