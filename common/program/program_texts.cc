#include "common/program/program_texts.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

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

// Returns a text between single quotes, as one line.
std::string quoted(const std::string& text, std::string_view quote, std::string_view backslash) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += quote;
    } else if (c == '\\') {
      out += backslash;
    } else {
      out += c == '\n' ? ' ' : c;
    }
  }
  return out + "'";
}

std::string in_zsh(const std::string& text) {
  return quoted(text, R"('\'')", "\\");
}

std::string in_fish(const std::string& text) {
  return quoted(text, R"(\')", R"(\\)");
}

// The case clauses of bash and zsh that say what may follow. zsh shows descriptions too.
class Clauses {
 public:
  Clauses(const CLI::App& app, bool described) : described_(described) {
    add("", app);
    for (const CLI::App* command : commands_of(app)) add(command->get_name(), *command);
  }

  // Returns the two case statements.
  std::string text() const {
    return fmt::format("  case $command in\n{}  esac\n  case \"$command $before\" in\n{}  esac\n",
                       of_commands_, of_options_);
  }

 private:
  void add(const std::string& name, const CLI::App& command) {
    std::string values, options;
    for (const CLI::App* one : commands_of(command))
      values += word(one->get_name(), one->get_description());
    for (const CLI::Option* option : options_of(command, true)) {
      if (const std::string choices = choices_of(*option); !choices.empty())
        values += " " + choices;
    }
    for (const CLI::Option* option : options_of(command, false)) {
      for (const std::string& flag : flags_of(*option)) {
        options += word(flag, option->get_description());
        if (has_value(*option)) of_options_ += clause(name + " " + flag, choices_of(*option), "");
      }
    }
    if (command.get_prefix_command())
      options = R"($("$program" "$command" --help 2>/dev/null | grep -o '^  -[^ ]*' | tr , ' '))";
    of_commands_ += clause(name, values, options);
  }
  std::string word(const std::string& name, const std::string& description) const {
    return " " + (described_ ? in_zsh(name + ":" + description) : name);
  }
  static std::string clause(const std::string& pattern, const std::string& values,
                            const std::string& options) {
    const auto list = [](const std::string& words) {
      return words.substr(words.starts_with(' ') ? 1 : 0);
    };
    return fmt::format("    ('{}') values=({}) options=({}) ;;\n", pattern, list(values),
                       list(options));
  }

  const bool described_;
  // The case statement by command: `values` are the words that may follow the command.
  std::string of_commands_;
  // The case statement by command and option: `values` of an option that takes a value. An option
  // with a free value has none here, so that the shell completes a file name.
  std::string of_options_;
};

std::string bash_completion(const CLI::App& app, const std::string& function,
                            const std::string& names) {
  const Clauses clauses(app, false);
  return fmt::format(
      R"({1}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} program=${{COMP_WORDS[0]}}
  local command='' values=() options=() i
  # bash takes the = of --option=value for a word of its own.
  if [[ $word == = ]]; then
    word=''
  elif [[ $before == = ]]; then
    before=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case ${{COMP_WORDS[i]}} in
    ({2}) command=${{COMP_WORDS[i]}} && break ;;
    esac
  done
{3}  [[ $word != -* ]] || values=("${{options[@]}}")
  mapfile -t COMPREPLY < <(compgen -W "${{values[*]}}" -- "$word")
}}
complete -o bashdefault -o default -F {1} {0}
)",
      app.get_name(), function, names, clauses.text());
}

// The script is a file of a folder of zsh's fpath, or is read by `source`.
std::string zsh_completion(const CLI::App& app, const std::string& function,
                           const std::string& names) {
  const Clauses clauses(app, true);
  return fmt::format(
      R"({1}() {{
  local word=$words[CURRENT] before=$words[CURRENT-1] program=$words[1] command='' one
  local -a values options
  if [[ $word == --*=* ]]; then
    before=${{word%%=*}}
    word=${{word#*=}}
    compset -P '*='
  fi
  for one in "${{(@)words[2,CURRENT-1]}}"; do
    case $one in
    ({2}) command=$one && break ;;
    esac
  done
{3}  if [[ $word == -* ]]; then
    _describe -o option options
  elif (( $#values )); then
    _describe value values
  else
    _files
  fi
}}
if [[ $funcstack[1] == {1} ]]; then
  {1} "$@"
else
  compdef {1} {0}
fi
)",
      app.get_name(), function, names, clauses.text());
}

// Returns the lines for the options and words of a command; `condition` says when the lines apply.
std::string fish_lines(const CLI::App& command, const std::string& program,
                       const std::string& condition) {
  std::string text;
  const auto add = [&](const std::string& what, const std::string& description) {
    text += fmt::format("complete -c {} -n '{}' {}{}\n", program, condition, what,
                        description.empty() ? "" : " -d " + in_fish(description));
  };
  for (const CLI::App* one : commands_of(command))
    add("-f -a " + one->get_name(), one->get_description());
  for (const CLI::Option* option : options_of(command, true)) {
    if (const std::string choices = choices_of(*option); !choices.empty())
      add("-f -a '" + choices + "'", option->get_description());
  }
  for (const CLI::Option* option : options_of(command, false)) {
    std::string what;
    for (const std::string& name : option->get_snames()) what += "-s " + name + " ";
    for (const std::string& name : option->get_lnames()) what += "-l " + name + " ";
    const std::string choices = choices_of(*option);
    if (has_value(*option)) what += choices.empty() ? "-r" : "-x -a '" + choices + "'";
    add(what.substr(0, what.find_last_not_of(' ') + 1), option->get_description());
  }
  if (command.get_prefix_command())
    add(fmt::format("-a \"({} {} --help 2>/dev/null | string match -rg '^  (-[^ ]*)' | "
                    "string split ,)\"",
                    program, command.get_name()),
        "");
  return text;
}

std::string fish_completion(const CLI::App& app) {
  const std::string& program = app.get_name();
  std::string text = fish_lines(app, program, "__fish_use_subcommand");
  for (const CLI::App* command : commands_of(app))
    text += fish_lines(*command, program, "__fish_seen_subcommand_from " + command->get_name());
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

std::vector<std::string> shells() {
  return {"bash", "fish", "zsh"};
}

std::string completion_script(const CLI::App& app, const std::string& shell) {
  const std::string& program = app.get_name();
  std::string function = "_" + program;
  std::replace(function.begin(), function.end(), '-', '_');
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
  const std::string all = fmt::format("{}", fmt::join(names, " | "));
  // zsh reads the names of the programs that a file completes from the file's first line.
  return (shell == "zsh" ? "#compdef " + program + "\n" : "") +
         fmt::format(
             "# Completes the command lines of {0} in {1}; written by `{0} completion {1}`.\n",
             program, shell) +
         (shell == "fish"  ? fish_completion(app)
          : shell == "zsh" ? zsh_completion(app, function, all)
                           : bash_completion(app, function, all));
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
