#include "common/program/log.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/program/log_text.h"

namespace muster {
namespace {

class Log : public ::testing::Test {
 protected:
  void TearDown() override {
    unsetenv("MUSTER_LOG_FORMAT");
    unsetenv("MUSTER_LOG_LEVEL");
    log::initialize("test");
  }
  // What `use` writes to standard error.
  template <typename Use>
  std::string written(const char* format, const char* level, Use use) {
    setenv("MUSTER_LOG_FORMAT", format, 1);
    setenv("MUSTER_LOG_LEVEL", level, 1);
    testing::internal::CaptureStderr();
    log::initialize("mnist-worker-0");
    use();
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(Log, WritesOneJsonObjectALine) {
  const std::string text = written("json", "info", [] {
    log::info("hello\n\"world\"\x1f", {{"step", 3}, {"peer", "a b"}, {"message", "shadowed"}});
    log::warning("second");
    log::error(std::string("bad \xff utf-8"));
  });
  std::istringstream lines(text);
  std::string line;
  std::vector<nlohmann::json> events;
  while (std::getline(lines, line)) events.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0]["message"], "hello\n\"world\"\x1f");
  EXPECT_EQ(events[0]["step"], 3);
  EXPECT_EQ(events[0]["level"], "info");
  EXPECT_EQ(events[0]["name"], "mnist-worker-0");
  EXPECT_EQ(events[0]["time"].get<std::string>().size(), 24u);
  EXPECT_EQ(events[1]["level"], "warning");
  EXPECT_EQ(events[2]["level"], "error");
}

TEST_F(Log, WritesTextOnOneLineWithoutColourOrEscapesWhereThereIsNoTerminal) {
  const std::string text = written("text", "debug", [] {
    log::write(log::Level::debug, "two\nlines \x1b[31m\u009b3\u00fc",
               {{"key", "a b"}, {"word", "c"}, {"n", 1.5}});
  });
  EXPECT_EQ(text.substr(9), "debug mnist-worker-0: two\\nlines \\x1b[31m\\u009b3\u00fc\n");
}

TEST_F(Log, MakesTheSameTextOfALineOfJson) {
  const auto use = [] {
    log::write(log::Level::warning, "two\nlines \x1b[31m",
               {{"key", "a b"}, {"word", "c"}, {"n", 1.5}});
  };
  std::string json = written("json", "info", use);
  std::string text = written("text", "info", use);
  json.pop_back();
  text.pop_back();
  const std::optional<std::string> made = log::as_text(json);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->substr(9), text.substr(9));
  setenv("TZ", "UTC+1", 1);
  tzset();
  EXPECT_EQ(log::as_text(
                R"({"time":"2026-01-02T03:04:05.250Z","level":"info","name":"a","message":"m"})"),
            "02:04:05 info a: m");
  unsetenv("TZ");
  tzset();
  for (const char* other : {"", "step 3", "{", "[1]", R"({"message":"m"})",
                            R"({"time":"2026-01-02T03:04:05.250Z","level":"info","message":"m"})",
                            R"({"time":"soon","level":"info","message":"m"})",
                            R"({"time":"2026-01-02T03:04:05Z","level":1,"message":"m"})"}) {
    EXPECT_EQ(log::as_text(other), std::nullopt) << other;
  }
}

TEST_F(Log, LeavesOutWhatIsBelowTheLevel) {
  const std::string text = written("text", "warning", [] {
    log::debug("d");
    log::info("i");
    log::warning("w");
  });
  EXPECT_EQ(text.find(" i\n"), std::string::npos);
  EXPECT_NE(text.find("warning mnist-worker-0: w"), std::string::npos);
}

}  // namespace
}  // namespace muster
