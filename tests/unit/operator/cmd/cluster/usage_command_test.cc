#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "common/exit_code.h"
#include "operator/api/status.h"
#include "operator/plan/usage.h"
#include "tests/unit/operator/cmd/cluster/cluster_answers.h"

namespace muster::cmd {
namespace {

using kube::FakeTransport;
using kube::Request;
using ::testing::HasSubstr;

Json config_map() {
  plan::UsageTotals totals;
  plan::Usage lab;
  TimeSpent spent;
  spent[TimeUse::computing] = 3 * 3600;
  spent[TimeUse::starting] = 3600;
  spent[TimeUse::queued] = 7200;
  lab.charge(spent, 8);
  lab.ended = {{"Succeeded", 12}, {"Failed", 1}};
  totals.add("2026-10", {{"team", lab}});
  totals.add("2026-11", {{"lab", lab}});
  totals.until = api::parse_time("2026-11-29T12:00:00Z");
  return {{"data", totals.data()}};
}

std::string shown(const UsageOptions& options, const kube::Response& response) {
  FakeTransport transport([&](const Request& request) {
    EXPECT_EQ(request.path, "/api/v1/namespaces/lab/configmaps/" + options.name);
    return response;
  });
  testing::internal::CaptureStdout();
  try {
    EXPECT_EQ(show_usage(access(transport), options), kSuccess);
  } catch (const Invalid& error) {
    return error.what() + testing::internal::GetCapturedStdout();
  }
  return testing::internal::GetCapturedStdout();
}

TEST(UsageCommand, PrintsATableForEachMonth) {
  const std::string text = shown({}, ok(config_map()));
  EXPECT_EQ(text,
            "2026-10\n"
            "NAMESPACE                SUCCEEDED  FAILED  DELETED   WAITED h     JOBS h     GPUS h  "
            "GOODPUT\n"
            "team                            12       1        0        2.0        4.0       32.0  "
            " 75.0 %\n"
            "all                             12       1        0        2.0        4.0       32.0  "
            " 75.0 %\n"
            "\n"
            "2026-11\n"
            "NAMESPACE                SUCCEEDED  FAILED  DELETED   WAITED h     JOBS h     GPUS h  "
            "GOODPUT\n"
            "lab                             12       1        0        2.0        4.0       32.0  "
            " 75.0 %\n"
            "all                             12       1        0        2.0        4.0       32.0  "
            " 75.0 %\n"
            "\n"
            "until 2026-11-29T12:00:00.000Z\n");
}

TEST(UsageCommand, PrintsAMonthAsJson) {
  const Json json = Json::parse(shown({.month = "2026-11", .output = "json"}, ok(config_map())));
  EXPECT_EQ(json["until"], "2026-11-29T12:00:00.000Z");
  EXPECT_EQ(json["months"].size(), 1u);
  const Json& lab = json["months"]["2026-11"]["lab"];
  EXPECT_EQ(lab["jobs"]["Succeeded"], 12);
  EXPECT_EQ(lab["seconds"]["queued"], 7200);
  EXPECT_EQ(lab["gpuSeconds"], 4 * 3600 * 8);
  EXPECT_EQ(lab["goodput"], 0.75);
}

TEST(UsageCommand, SaysWhatItExpected) {
  EXPECT_EQ(shown({.month = "2026-12"}, ok(config_map())),
            "--month: expected one of the months that are kept (2026-10, 2026-11), found 2026-12");
  EXPECT_THAT(shown({}, kube::refusal(404, "NotFound", "none")),
              HasSubstr("ConfigMap lab/muster-usage: expected what the operator's leader writes"));
  EXPECT_EQ(shown({}, ok({{"data", {{"2026-11", "x"}}}})),
            "ConfigMap lab/muster-usage: data.2026-11: expected a JSON object of namespaces, found "
            "1 bytes that are none");
}

}  // namespace
}  // namespace muster::cmd
