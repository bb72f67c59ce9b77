#include "operator/local/command.h"

#include <algorithm>

#include "common/documents/json.h"
#include "operator/api/templates.h"

namespace muster::local {

namespace {

const std::string* find(const Variables& variables, const std::string& name) {
  const auto found = std::ranges::find(variables, name, &Variables::value_type::first);
  return found == variables.end() ? nullptr : &found->second;
}

void set(Variables& variables, const std::string& name, std::string value) {
  const auto found = std::ranges::find(variables, name, &Variables::value_type::first);
  if (found == variables.end()) {
    variables.emplace_back(name, std::move(value));
  } else {
    found->second = std::move(value);
  }
}

void read_variables(const Json& container, ContainerCommand& result) {
  for (const Json& entry : member(container, "env")) {
    const std::string name = string_or(entry, "name", "");
    if (name.empty() || api::is_reserved(name)) continue;
    if (const Json& source = member(entry, "valueFrom"); source.is_object() && !source.empty()) {
      result.left_out.push_back(name + " (" + source.begin().key() + ")");
      continue;
    }
    set(result.variables, name, expand(string_or(entry, "value", ""), result.variables));
  }
  const Json& sources = member(container, "envFrom");
  if (sources.is_array() && !sources.empty()) result.left_out.push_back("envFrom");
}

}  // namespace

std::string expand(const std::string& text, const Variables& variables) {
  std::string result;
  for (size_t at = 0; at < text.size(); ++at) {
    const char next = at + 1 < text.size() ? text[at + 1] : '\0';
    if (text[at] != '$' || (next != '$' && next != '(')) {
      result += text[at];
      continue;
    }
    if (next == '$') {
      result += '$';
      ++at;
      continue;
    }
    const size_t end = text.find(')', at);
    if (end == std::string::npos) return result + text.substr(at);
    const std::string* value = find(variables, text.substr(at + 2, end - at - 2));
    result += value != nullptr ? *value : text.substr(at, end - at + 1);
    at = end;
  }
  return result;
}

ContainerCommand container_command(const Json& pod_template, const Variables& ours) {
  ContainerCommand result;
  result.variables = ours;
  const Json& container = api::counting_container(pod_template);
  read_variables(container, result);
  for (const std::string& word : strings_in(member(container, "command"))) {
    result.command.push_back(expand(word, result.variables));
  }
  for (const std::string& word : strings_in(member(container, "args"))) {
    result.arguments.push_back(expand(word, result.variables));
  }
  result.working_directory = string_or(container, "workingDir", "");
  result.grace = api::grace_of(pod_template);
  return result;
}

}  // namespace muster::local
