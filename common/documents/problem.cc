#include "common/documents/problem.h"

#include "common/documents/scalar.h"
#include "common/error.h"
#include "common/text/shorten.h"

namespace muster {

std::string Problem::text() const {
  std::string line = where.empty() ? "" : where + ": ";
  if (!path.empty()) line += shown_path() + ": ";
  // The suggestion comes first, because the list of what is possible may be long.
  const bool is_meant = hint.starts_with("did you mean");
  line += (is_meant ? hint + " Expected " : "expected ") + expected + ", found " + found;
  if (!hint.empty() && !is_meant) line += "; " + hint;
  return line;
}

Problem make_problem(const Document& document, const std::string& path, std::string expected,
                     std::string found, std::string hint) {
  Problem problem;
  problem.path = path;
  problem.where = document.locate(path);
  problem.expected = std::move(expected);
  problem.found = std::move(found);
  problem.hint = std::move(hint);
  problem.line = document.line(path);
  if (std::string shown = document.path_in_text(path); shown != path)
    problem.path_in_text = std::move(shown);
  return problem;
}

std::string describe(const Json& value) {
  if (value.is_null()) return "null";
  if (value.is_object()) return value.empty() ? "an empty object" : "an object";
  if (value.is_array()) {
    if (value.empty()) return "an empty list";
    return "a list of " + std::to_string(value.size()) +
           (value.size() == 1 ? " entry" : " entries");
  }
  if (value.is_string() && is_beyond_numbers(value.get_ref<const std::string&>())) {
    return value.get<std::string>().substr(0, 80) + " (not a finite number)";
  }
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 80) text = text.substr(0, character_border(text, 77)) + "...";
  if (value.is_string()) return text + " (a string)";
  if (value.is_boolean()) return text + " (a boolean)";
  return text + (value.is_number_integer() ? " (an integer)" : " (a number)");
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ", ";
    text += word;
  }
  return text;
}

void require_no_problems(const std::vector<Problem>& problems, int exit_code) {
  if (problems.empty()) return;
  std::string text;
  for (const Problem& problem : problems) {
    if (!text.empty()) text += "\n";
    text += problem.text();
  }
  throw Invalid(text, exit_code);
}

}  // namespace muster
