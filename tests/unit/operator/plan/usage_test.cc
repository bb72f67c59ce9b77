#include "operator/plan/usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "operator/api/status.h"

namespace muster::plan {
namespace {

using namespace std::chrono_literals;

api::Time at(const std::string& text) {
  return api::parse_time(text).value();
}

Usage used(TimeUse use, double seconds, int gpus = 0) {
  TimeSpent spent;
  spent[use] = seconds;
  Usage usage;
  usage.charge(spent, gpus);
  return usage;
}

api::TrainingJob job() {
  api::TrainingJob job;
  job.name_space = "lab";
  job.name = "mnist";
  job.created = at("2026-11-01T10:00:00Z");
  const Json container = {{"name", "trainer"},
                          {"resources", {{"limits", {{"nvidia.com/gpu", 2}}}}}};
  job.replicas[api::Role::worker] = {.replicas = 3,
                                     .pod_template = {{"spec", {{"containers", {container}}}}}};
  job.replicas[api::Role::ps].replicas = 1;
  return job;
}

TEST(Usage, CountsGpusOnlyWhileTheJobHasThem) {
  EXPECT_EQ(gpus_of(job()), 6);
  api::TrainingJob smaller = job();
  smaller.status.group[api::Role::worker] = 1;
  EXPECT_EQ(gpus_of(smaller), 2);
  EXPECT_EQ(used(TimeUse::computing, 10, 6).gpu_seconds, 60);
  EXPECT_EQ(used(TimeUse::lost, 10, 6).gpu_seconds, 60);
  EXPECT_EQ(used(TimeUse::queued, 10, 6).gpu_seconds, 0);
  EXPECT_EQ(used(TimeUse::suspended, 10, 6).gpu_seconds, 0);
}

TEST(Usage, AGapIsOfUnknownUseFromTheCreationToTheEnd) {
  UsageByNamespace gap;
  count_gap(gap, job(), at("2026-11-01T09:00:00Z"), at("2026-11-01T10:00:30Z"));
  EXPECT_EQ(gap.at("lab"), used(TimeUse::unknown, 30, 6));
  api::TrainingJob ended = job();
  ended.status.completion_time = at("2026-11-01T10:00:10Z");
  for (const char* type : {"Succeeded", "Finished"}) {
    ended.status.conditions.emplace_back().type = type;
    ended.status.conditions.back().status = true;
  }
  count_gap(gap, ended, at("2026-11-01T10:00:05Z"), at("2026-11-01T10:00:30Z"));
  EXPECT_EQ(gap.at("lab").spent[TimeUse::unknown], 35);
  EXPECT_EQ(gap.at("lab").ended.at("Succeeded"), 1);
  // It had ended, and was counted, before.
  const UsageByNamespace before = gap;
  count_gap(gap, ended, at("2026-11-01T10:00:10Z"), at("2026-11-01T10:00:30Z"));
  EXPECT_EQ(gap, before);
  api::TrainingJob suspended = job();
  suspended.status.goodput = {{"use", "suspended"}};
  count_gap(gap, suspended, at("2026-11-01T10:00:00Z"), at("2026-11-01T10:00:30Z"));
  EXPECT_EQ(gap.at("lab").gpu_seconds, before.at("lab").gpu_seconds);
}

TEST(Usage, InAGapAJobWentOnAsItsStatusSaysWhileALeaderLooked) {
  UsageByNamespace gap;
  api::TrainingJob running = job();
  running.status.goodput = {{"use", "computing"}};
  count_gap(gap, running, at("2026-11-01T10:00:00Z"), at("2026-11-01T10:00:30Z"),
            at("2026-11-01T10:00:20Z"));
  EXPECT_EQ(gap.at("lab").spent[TimeUse::computing], 20);
  EXPECT_EQ(gap.at("lab").spent[TimeUse::unknown], 10);
  EXPECT_EQ(gap.at("lab").gpu_seconds, used(TimeUse::unknown, 30, 6).gpu_seconds);
}

TEST(UsageTotals, AreReadAsTheyWereWritten) {
  UsageTotals totals;
  Usage usage = used(TimeUse::computing, 12.5, 2);
  usage.ended = {{"Failed", 1}, {"Succeeded", 3}};
  totals.add("2026-11", {{"lab", usage}, {"idle", {}}});
  totals.add("2026-11", {{"lab", usage}});
  totals.until = at("2026-11-30T23:59:59.5Z");
  totals.write = "abc";
  const UsageTotals read = UsageTotals::of(totals.data());
  EXPECT_EQ(read.months(), totals.months());
  EXPECT_EQ(read.months().at("2026-11").at("lab").spent[TimeUse::computing], 25);
  EXPECT_EQ(read.months().at("2026-11").at("lab").ended.at("Succeeded"), 6);
  EXPECT_FALSE(read.months().at("2026-11").contains("idle"));
  EXPECT_EQ(read.until, totals.until);
  EXPECT_EQ(read.write, "abc");
  EXPECT_TRUE(UsageTotals::of(nullptr).months().empty());
}

TEST(UsageTotals, KeepThirteenMonthsAndSumTheNamespacesBeyondTheirNumber) {
  UsageTotals totals;
  Usage all;
  for (const TimeUseName& use : time_uses()) all.spent[use.use] = 1234567890.123;
  all.ended = {{"Deleted", 1'000'000}, {"Failed", 1'000'000}, {"Succeeded", 1'000'000}};
  for (int month = 1; month <= 12; ++month)
    for (const char* year : {"2025-", "2026-"}) {
      UsageByNamespace more;
      for (size_t i = 0; i < UsageTotals::kMostNamespaces + 5; ++i)
        more[std::string(60, 'n') + std::to_string(100 + i)] = all;
      totals.add(std::string(year) + (month < 10 ? "0" : "") + std::to_string(month), more);
    }
  EXPECT_EQ(totals.months().size(), UsageTotals::kMostMonths);
  EXPECT_EQ(totals.months().begin()->first, "2025-12");
  const UsageByNamespace& month = totals.months().at("2026-12");
  EXPECT_EQ(month.size(), UsageTotals::kMostNamespaces + 1);
  EXPECT_EQ(month.at(UsageTotals::kOther).ended.at("Failed"), 5'000'000);
  EXPECT_LT(totals.data().dump().size(), 1u << 20) << "the API server takes 1 MiB";
}

TEST(UsageTotals, TakeBackWhatWasCountedAsAnotherUse) {
  UsageTotals totals;
  totals.add("2026-10", {{"lab", used(TimeUse::starting, 60)}});
  const Usage computed = used(TimeUse::computing, 70).since(used(TimeUse::starting, 60));
  totals.add("2026-11", {{"lab", computed}});
  EXPECT_EQ(totals.months().at("2026-10").at("lab").spent.total(), 0);
  EXPECT_EQ(totals.months().at("2026-11").at("lab").spent, used(TimeUse::computing, 70).spent);
}

TEST(UsageTotals, RefuseWhatTheyHaveNotWritten) {
  const auto trouble = [](const Json& data) {
    try {
      UsageTotals::of(data);
    } catch (const Invalid& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(trouble({{"until", "noon"}}), "data.until: expected a time, found \"noon\"");
  EXPECT_EQ(trouble({{"2026-11", "{"}}),
            "data.2026-11: expected a JSON object of namespaces, found 1 bytes that are none");
  EXPECT_EQ(trouble({{"2026-11", R"({"lab": 3})"}}),
            "data.2026-11.lab: expected an object, found 3");
  EXPECT_EQ(trouble({{"2026-11", R"({"lab": {"gpuSeconds": -1}})"}}),
            "data.2026-11.lab: expected gpuSeconds from 0 on, found -1");
  EXPECT_EQ(trouble({{"2026-11", R"({"lab": {"ended": {"Failed": "x"}}})"}}),
            "data.2026-11.lab: expected a number of jobs from 0 on, found \"x\"");
  EXPECT_EQ(trouble({{"later", "unknown"}}), "");
}

}  // namespace
}  // namespace muster::plan
