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
       "did you mean logs? Expected one of the commands logs, data, found \"lgos\""},
      {{"logs", "job", "--tial=3"},
       "did you mean --tail? Expected an option of logs, found \"--tial\""},
      {{"logs", "--json", "job"},
       "did you mean --output json? Expected an option of logs, found \"--json\""},
      {{"logs", "--json"},
       "did you mean --output json? Expected an option of logs, found \"--json\""},
      {{"data", "digits", "--json"}, "expected an option of digits, found \"--json\""},
      {{"--verison"}, "expected an option of program, found \"--verison\""},
      {{"logs"}, ""},
  };
  for (const auto& item : cases) EXPECT_EQ(said(item.words), item.text) << item.words.front();
}

TEST(UnknownCommand, IsTakenForWhatOtherProgramsCallOurs) {
  const std::vector<std::string> commands = {"run", "list"};
  EXPECT_EQ(unknown_command({"trian"}, commands),
            "did you mean run? Expected one of the commands run, list, found \"trian\"");
  EXPECT_EQ(unknown_command({"get"}, commands),
            "did you mean list? Expected one of the commands run, list, found \"get\"");
  EXPECT_EQ(unknown_command({"apply"}, commands),
            "expected one of the commands run, list, found \"apply\"");
}

}  // namespace
}  // namespace muster
