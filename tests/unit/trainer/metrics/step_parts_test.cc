#include "trainer/metrics/step_parts.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trainer/metrics/reporter.h"

namespace muster::metrics {
namespace {

using testing::ContainsRegex;

std::string part(const std::string& name, const std::string& rest) {
  return "step_part_seconds" + rest + "\\{index=\"0\",role=\"chief\",part=\"" + name + "\"\\} ";
}

TEST(StepParts, SplitsEachStepByWhatItsTimeWasSpentOn) {
  Reporter reporter("", "chief", 0);
  StepParts parts;
  TimeSpent spent;
  spent[TimeUse::joining] = 100;
  spent[TimeUse::computing] = 50;
  parts.begin(spent);
  spent[TimeUse::computing] += 4;
  spent[TimeUse::input] += 1;
  spent[TimeUse::communication] += 2;
  spent[TimeUse::slowest] += 0.5;
  parts.end_step(spent, 1.5);
  spent[TimeUse::computing] += 3;
  spent[TimeUse::checkpoint] += 0.25;
  spent[TimeUse::evaluating] += 7;
  parts.end_step(spent, 0);
  parts.report(reporter);
  parts.report(reporter);
  const std::string text = reporter.metrics_text();
  for (const auto& [name, steps, sum] :
       {std::tuple("input", "1", "1"), std::tuple("compute", "2", "5.5"),
        std::tuple("communication", "1", "2"), std::tuple("slowest", "1", "0.5"),
        std::tuple("update", "1", "1.5"), std::tuple("checkpoint", "1", "0.25")}) {
    EXPECT_THAT(text, ContainsRegex(part(name, "_count") + steps + "\n"));
    EXPECT_THAT(text, ContainsRegex(part(name, "_sum") + sum + "\n"));
  }
}

TEST(StepParts, AnUpdateIsNoLongerThanWhatWasComputed) {
  Reporter reporter("", "chief", 0);
  StepParts parts;
  TimeSpent spent;
  spent[TimeUse::computing] = 2;
  parts.end_step(spent, 3);
  parts.report(reporter);
  const std::string text = reporter.metrics_text();
  EXPECT_THAT(text, ContainsRegex(part("update", "_sum") + "2\n"));
  EXPECT_THAT(text, ContainsRegex(part("compute", "_count") + "0\n"));
}

TEST(StepParts, ExistFromTheStartWhereStepsAreTaken) {
  const std::string text = Reporter("", "chief", 0).metrics_text();
  for (const std::string_view name : StepParts::kNames)
    EXPECT_THAT(text, ContainsRegex(part(std::string(name), "_count") + "0\n"));
  EXPECT_THAT(Reporter("", "ps", 0).metrics_text(), Not(testing::HasSubstr("step_part")));
}

}  // namespace
}  // namespace muster::metrics
