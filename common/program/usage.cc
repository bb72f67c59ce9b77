#include "common/program/usage.h"

#include <algorithm>

#include "common/documents/problem.h"
#include "common/text/nearest.h"

namespace muster {

std::string unknown_command(const std::vector<std::string>& words,
                            const std::vector<std::string>& commands) {
  if (words.empty() || words.front().starts_with('-')) return "";
  const std::string hint = did_you_mean(words.front(), commands);
  return "expected one of the commands " + join(commands) + ", found \"" + words.front() + "\"" +
         (hint.empty() ? "" : "; " + hint);
}

namespace {

std::vector<std::string> long_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames())
      if (!option->get_group().empty()) names.push_back("--" + name);
  return names;
}

// Returns the text for the first option that `app` does not have; "" if there is none.
std::string unknown_option(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining(), options = long_names(app);
  const auto found = std::ranges::find_if(
      words, [](const std::string& word) { return word.size() > 1 && word.starts_with('-'); });
  if (found == words.end() || *found == "--") return "";
  const std::string word = found->substr(0, found->find('='));
  std::string hint = did_you_mean(word, options);
  const bool is_format = word == "--json" || word == "--yaml";
  if (is_format && std::ranges::find(options, "--output") != options.end())
    hint = "did you mean --output " + word.substr(2) + "?";
  return "expected an option of " + app.get_name() + ", found \"" + word + "\"" +
         (hint.empty() ? "" : "; " + hint);
}

}  // namespace

std::string unknown_word(const CLI::App& app) {
  if (const auto used = app.get_subcommands(); !used.empty()) return unknown_word(*used.front());
  std::vector<std::string> commands;
  const auto is_shown = [](const CLI::App* command) { return !command->get_group().empty(); };
  for (const CLI::App* command : app.get_subcommands(is_shown))
    commands.push_back(command->get_name());
  const std::string command = commands.empty() ? "" : unknown_command(app.remaining(), commands);
  return command.empty() ? unknown_option(app) : command;
}

}  // namespace muster
