#include "common/program/usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster {
namespace {

// What unknown_word() says of a command line; "parsed" if it has no error.
std::string said(std::vector<std::string> words) {
  CLI::App app("", "program");
  CLI::App* logs = app.add_subcommand("logs", "");
  std::string output, job;
  logs->add_option("JOB", job)->required();
  logs->add_option("-o,--output", output);
  logs->add_option("--tail", output);
  app.add_subcommand("hidden", "")->group("");
  app.add_subcommand("data", "")->add_subcommand("digits", "");
  std::ranges::reverse(words);
  try {
    app.parse(words);
  } catch (const CLI::ParseError&) {
    return unknown_word(app);
  }
  return "parsed";
}

TEST(UnknownWord, IsACommandOrAnOption) {
  const struct {
    std::vector<std::string> words;
    const char* text;
  } cases[] = {
      {{"logs", "job", "--tail", "3"}, "parsed"},
      {{"lgos", "job"},
       "expected one of the commands logs, data, found \"lgos\"; did you mean logs?"},
      {{"logs", "job", "--tial=3"},
       "expected an option of logs, found \"--tial\"; did you mean --tail?"},
      {{"logs", "--json", "job"},
       "expected an option of logs, found \"--json\"; did you mean --output json?"},
      {{"logs", "--json"},
       "expected an option of logs, found \"--json\"; did you mean --output json?"},
      {{"data", "digits", "--json"}, "expected an option of digits, found \"--json\""},
      {{"--verison"}, "expected an option of program, found \"--verison\""},
      {{"logs"}, ""},
  };
  for (const auto& item : cases) EXPECT_EQ(said(item.words), item.text) << item.words.front();
}

}  // namespace
}  // namespace muster
