#include "common/program/usage.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/documents/problem.h"
#include "common/text/nearest.h"

namespace muster {

namespace {

// The names that other programs give to our commands.
constexpr std::pair<const char*, const char*> kOtherNames[] = {
    {"train", "run"},    {"start", "run"}, {"apply", "submit"},    {"create", "submit"},
    {"get", "list"},     {"ls", "list"},   {"describe", "status"}, {"check", "validate"},
    {"cancel", "stop"},  {"kill", "stop"}, {"remove", "delete"},   {"pause", "suspend"},
    {"infer", "predict"}};

std::string command_meant(const std::string& word, const std::vector<std::string>& commands) {
  if (std::string hint = did_you_mean(word, commands); !hint.empty()) return hint;
  std::vector<std::string> others;
  for (const auto& [other, command] : kOtherNames)
    if (std::ranges::find(commands, command) != commands.end()) others.emplace_back(other);
  const std::string near = nearest(word, others);
  const auto found =
      std::ranges::find(kOtherNames, near, &std::pair<const char*, const char*>::first);
  return found == std::end(kOtherNames) ? "" : std::string("did you mean ") + found->second + "?";
}

// The suggestion comes first, because the list of what is possible may be long.
std::string refusal(const std::string& hint, const std::string& expected, const std::string& word) {
  return (hint.empty() ? "expected " : hint + " Expected ") + expected + ", found \"" + word + "\"";
}

}  // namespace

std::string unknown_command(const std::vector<std::string>& words,
                            const std::vector<std::string>& commands) {
  if (words.empty() || words.front().starts_with('-')) return "";
  return refusal(command_meant(words.front(), commands), "one of the commands " + join(commands),
                 words.front());
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
  return refusal(hint, "an option of " + app.get_name(), word);
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
