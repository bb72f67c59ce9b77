#include "operator/cmd/show/log_printer.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "common/documents/document.h"

namespace muster::cmd {
namespace {

TEST(LogPrinter, puts_the_replica_before_each_line) {
  LogPrinter printer(/*json=*/false, /*coloured=*/false);
  printer.know({"ps-0", "worker-10"});
  EXPECT_EQ(printer.line("ps-0", "12:34:56 info a", {}), "ps-0      | 12:34:56 info a");
  EXPECT_EQ(printer.line("worker-10", "", {}), "worker-10 | ");
}

TEST(LogPrinter, says_the_replica_once) {
  const LogPrinter printer(/*json=*/false, /*coloured=*/false);
  EXPECT_EQ(printer.line("ps-0", "12:34:56 info mnist-ps-0: serving: yes", {}),
            "ps-0 | 12:34:56 info serving: yes");
  EXPECT_EQ(printer.line("ps-0", "12:34:56 info ps-0: serving", {}),
            "ps-0 | 12:34:56 info serving");
  for (const char* other : {"12:34:56 info mnist-ps-1: serving", "12:34:56 info maps-0: serving",
                            "mnist-ps-0: serving"})
    EXPECT_EQ(printer.line("ps-0", other, {}), std::string("ps-0 | ") + other);
}

TEST(LogPrinter, gives_each_role_a_colour) {
  LogPrinter printer(/*json=*/false, /*coloured=*/true);
  printer.know({"worker-0"});
  EXPECT_EQ(printer.line("worker-0", "step", {}), "\x1b[32mworker-0 |\x1b[0m step");
  const auto colour = [&](const char* replica) {
    return printer.line(replica, "", {}).substr(0, 5);
  };
  EXPECT_EQ(colour("worker-1"), colour("worker-0"));
  EXPECT_NE(colour("ps-0"), colour("worker-0"));
  EXPECT_EQ(colour("master-0"), colour("chief-0"));
}

TEST(LogPrinter, has_no_colours_where_nobody_sees_them) {
  EXPECT_FALSE(takes_colour(stdout)) << "the tests' is no terminal";
}

TEST(LogPrinter, says_in_json_what_is_known_of_a_line) {
  const LogPrinter printer(/*json=*/true, /*coloured=*/true);
  EXPECT_EQ(printer.line("worker-0", "12:34:56 warning mnist-worker-0: slow n=1", 1'767'323'046),
            R"({"replica":"worker-0","time":"2026-01-02T03:04:06Z","level":"warning",)"
            R"("name":"mnist-worker-0","message":"slow n=1"})");
  EXPECT_EQ(printer.line("worker-0", "step 3", {}), R"({"replica":"worker-0","message":"step 3"})");
  EXPECT_EQ(printer.line("worker-0", R"({"level":"info","replica":"x","step":3})", {}),
            R"({"replica":"worker-0","level":"info","step":3})");
  EXPECT_EQ(printer.line("worker-0", "\xff", {}),
            "{\"replica\":\"worker-0\",\"message\":\"\ufffd\"}");
}

TEST(LogPrinter, takes_a_line_that_is_nested_too_deep_for_plain_text) {
  const auto nested = [](size_t levels) {
    const size_t lists = levels - 1;  // the line itself is an object
    return R"({"time":"2026-01-02T03:04:05.250Z","level":"info","name":"a","message":"m","x":)" +
           std::string(lists, '[') + std::string(lists, ']') + "}";
  };
  const std::string deep = nested(100'000);
  EXPECT_EQ(LogPrinter(/*json=*/false, /*coloured=*/false).line("ps-0", deep, {}),
            "ps-0 | " + deep);
  const LogPrinter printer(/*json=*/true, /*coloured=*/false);
  for (const size_t levels : {size_t{65}, size_t{100'000}}) {
    const Json shown = Json::parse(printer.line("ps-0", nested(levels), {}));
    EXPECT_EQ(shown, (Json{{"replica", "ps-0"}, {"message", nested(levels)}}));
  }
  EXPECT_EQ(Json::parse(printer.line("ps-0", nested(64), {}))["message"], "m");
}

TEST(ParseLogText, reads_what_the_trainer_logs_and_nothing_else) {
  const auto parsed = parse_log_text("12:34:56 error lost: and found");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->level, "error");
  EXPECT_EQ(parsed->name, "lost");
  EXPECT_EQ(parsed->message, "and found");
  EXPECT_EQ(parse_log_text("2026-01-02 12:34:56 info Failed: the job")->name, "Failed");
  for (const char* other :
       {"", "12:34:56", "12:34:56 ", "12:34:56 loud a: b", "step 12:34:56 info"})
    EXPECT_FALSE(parse_log_text(other)) << other;
}

}  // namespace
}  // namespace muster::cmd
