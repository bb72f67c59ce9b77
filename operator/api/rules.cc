#include "operator/api/rules.h"

#include <algorithm>

#include "common/documents/json.h"
#include "common/documents/problem.h"
#include "operator/api/schema.h"

namespace muster::api {

namespace {

constexpr std::string_view kExpected = "expected ";

std::string below(const std::string& path, const std::string& field) {
  return path + (path.empty() || field.empty() ? "" : ".") + field;
}

Rule to_rule(const Json& rule, const std::string& path) {
  const std::string check = string_or(rule, "check", "");
  const std::string blame = string_or(rule, "fieldPath", ".").substr(1);
  return {path,
          rule.at("rule"),
          blame,
          rule.at("message").get<std::string>().substr(kExpected.size()),
          check.empty() ? nullptr : rule_check(check),
          rule.value("reads", std::vector<std::string>())};
}

// Collects the rules that have a check or are about changes. The others are checked by other code:
// check_templates() and spec::check_training().
void collect(const Json& schema, const std::string& path, std::vector<Rule>& rules) {
  for (const auto& [name, property] : member(schema, "properties").items()) {
    collect(property, below(path, name), rules);
  }
  for (const Json& rule : member(schema, "x-kubernetes-validations")) {
    if (rule.contains("check") || rule.contains("reason")) rules.push_back(to_rule(rule, path));
  }
}

bool can_be_read(const Problems& problems, const std::string& path) {
  const bool within = path.ends_with(".*");
  return within ? problems.is_whole(path.substr(0, path.size() - 2)) : problems.is_sound(path);
}

}  // namespace

const std::vector<Rule>& rules() {
  static const std::vector<Rule> table = [] {
    std::vector<Rule> all;
    collect(training_job_schema(), "", all);
    return all;
  }();
  return table;
}

void check_rules(const Document& document, Problems& problems) {
  // Rules check different conditions, so a finding of one rule must not hide a finding of another.
  std::vector<Problem> found_by_rules;
  for (const Rule& rule : rules()) {
    const Json* self = document.find(rule.path);
    if (rule.found == nullptr || self == nullptr || !self->is_object()) continue;
    const auto read = [&](const std::string& field) {
      return can_be_read(problems, below(rule.path, field));
    };
    if (!std::all_of(rule.reads.begin(), rule.reads.end(), read)) continue;
    const std::string found = rule.found(*self);
    if (found.empty()) continue;
    found_by_rules.push_back(
        make_problem(document, below(rule.path, rule.blame), rule.expected, found));
  }
  problems.add(std::move(found_by_rules));
}

}  // namespace muster::api
