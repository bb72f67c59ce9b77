#include "common/program_texts.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

namespace muster {

namespace {

using Commands = std::vector<const CLI::App*>;
using Options = std::vector<const CLI::Option*>;

Commands commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

Options options_of(const CLI::App& app, bool positional) {
  return app.get_options([positional](const CLI::Option* option) {
    return !option->get_group().empty() && option->get_positional() == positional;
  });
}

bool has_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

std::vector<std::string> flags_of(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const std::string& name : option.get_snames()) flags.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flags.push_back("--" + name);
  return flags;
}

// Returns "text json" for an option of type "TEXT:{text,json}", which CLI::IsMember checks.
std::string choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t begin = type.find('{');
  const size_t end = type.find('}', begin);
  if (begin == std::string::npos || end == std::string::npos) return "";
  std::string choices = type.substr(begin + 1, end - begin - 1);
  std::replace(choices.begin(), choices.end(), ',', ' ');
  return choices;
}

std::string all_flags(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : options_of(app, false)) {
    for (std::string& flag : flags_of(*option)) flags.push_back(std::move(flag));
  }
  return fmt::format("{}", fmt::join(flags, " "));
}

// Returns the words that may stand where no option does: commands, or the choices of a positional.
std::string all_words(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::App* command : commands_of(app)) words.push_back(command->get_name());
  for (const CLI::Option* option : options_of(app, true)) {
    if (std::string choices = choices_of(*option); !choices.empty()) words.push_back(choices);
  }
  return fmt::format("{}", fmt::join(words, " "));
}

std::string completion_of_words(const CLI::App& app, const std::string& command) {
  const std::string options =
      app.get_prefix_command()
          ? R"($("${COMP_WORDS[0]}" "$command" --help 2>/dev/null | grep -o '^  -[^ ]*' | tr , ' '))"
          : all_flags(app);
  return fmt::format("    '{}') words=\"{}\" options=\"{}\" ;;\n", command, all_words(app),
                     options);
}

// Offers nothing for a free value, so that bash completes it as a file name.
std::string completion_of_values(const CLI::App& app, const std::string& command) {
  std::string text;
  for (const CLI::Option* option : options_of(app, false)) {
    if (!has_value(*option)) continue;
    const std::string choices = choices_of(*option);
    for (const std::string& flag : flags_of(*option)) {
      text += fmt::format("    '{} {}') words=\"{}\" options= ;;\n", command, flag, choices);
    }
  }
  return text;
}

std::string escaped(const std::string& text) {
  std::string roff;
  for (const char c : text) {
    if (c == '\\') {
      roff += "\\e";
    } else if (c == '-') {
      roff += "\\-";
    } else {
      if ((c == '.' || c == '\'') && (roff.empty() || roff.back() == '\n')) roff += "\\&";
      roff += c;
    }
  }
  return roff;
}

std::string entry(const CLI::Option& option) {
  std::string names;
  for (const std::string& flag : flags_of(option)) {
    names += (names.empty() ? "" : ", ") + ("\\fB" + escaped(flag) + "\\fR");
  }
  if (option.get_positional()) names = "\\fI" + escaped(option.get_name(true)) + "\\fR";
  if (has_value(option) && !option.get_positional()) {
    const std::string choices = choices_of(option);
    names += " \\fI" + escaped(choices.empty() ? option.get_type_name() : choices) + "\\fR";
  }
  return ".TP\n" + names + "\n" + escaped(option.get_description()) + "\n";
}

std::string entries(const CLI::App& app) {
  std::string text;
  for (const bool positional : {true, false}) {
    for (const CLI::Option* option : options_of(app, positional)) text += entry(*option);
  }
  return text;
}

std::string verbatim(const std::string& text) {
  return text.empty() ? "" : ".PP\n.nf\n" + escaped(text) + "\n.fi\n";
}

std::string synopsis(const CLI::App& command) {
  std::string text = command.get_name() + (command.get_prefix_command() ? " [OPTION...]" : "");
  if (!options_of(command, false).empty()) text += " [OPTION...]";
  for (const CLI::Option* option : options_of(command, true)) {
    const std::string name =
        option->get_name(true) + (option->get_items_expected_max() > 1 ? "..." : "");
    text += " " + (option->get_required() ? name : "[" + name + "]");
  }
  return text;
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  const std::string& program = app.get_name();
  std::string function = "_" + program;
  std::replace(function.begin(), function.end(), '-', '_');
  std::string words = completion_of_words(app, "");
  std::string values = completion_of_values(app, "");
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(app)) {
    const std::string& name = names.emplace_back(command->get_name());
    words += completion_of_words(*command, name);
    values += completion_of_values(*command, name);
  }
  return fmt::format(
      R"(# Completes the command lines of {0} in bash; written by `{0} completion bash`.
{1}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} command='' words='' options='' i
  # bash takes the = of --option=value for a word of its own.
  if [[ $word == = ]]; then
    word=''
  elif [[ $before == = ]]; then
    before=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case ${{COMP_WORDS[i]}} in
    {2}) command=${{COMP_WORDS[i]}} && break ;;
    esac
  done
  case $command in
{3}  esac
  case "$command $before" in
{4}  esac
  [[ $word != -* ]] || words=$options
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}}
complete -o bashdefault -o default -F {1} {0}
)",
      program, function, fmt::join(names, " | "), words, values);
}

std::string man_page(const CLI::App& app, const std::string& version) {
  const std::string& program = app.get_name();
  std::string title = program;
  std::transform(title.begin(), title.end(), title.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const Commands commands = commands_of(app);
  std::string text = fmt::format(".TH {} 1 \"\" \"{} {}\" \"User Commands\"\n", escaped(title),
                                 escaped(program), escaped(version));
  text += ".SH NAME\n" + escaped(program + " - " + app.get_description()) + "\n";
  text += ".SH SYNOPSIS\n";
  if (app.get_require_subcommand_min() == 0) text += escaped(synopsis(app)) + "\n.br\n";
  if (!commands.empty()) text += escaped(program + " COMMAND [OPTION...]") + "\n";
  text += ".SH OPTIONS\n" + entries(app);
  if (!commands.empty()) text += ".SH COMMANDS\n";
  for (const CLI::App* command : commands) {
    text += ".SS " + escaped(program + " " + synopsis(*command)) + "\n";
    text += escaped(command->get_description()) + "\n";
    if (command->get_prefix_command()) {
      text += ".PP\n" + escaped(program + " " + command->get_name() + " --help") +
              " lists its options.\n";
    }
    text += entries(*command) + verbatim(command->get_footer());
  }
  if (!app.get_footer().empty()) text += ".SH NOTES\n" + verbatim(app.get_footer());
  return text;
}

}  // namespace muster
