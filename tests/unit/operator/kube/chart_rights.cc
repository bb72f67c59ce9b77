#include "tests/unit/operator/kube/chart_rights.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/documents/json.h"
#include "common/system/file.h"
#include "tests/unit/operator/kube/fake_api_server.h"
#include "tests/unit/operator/kube/fake_transport.h"

namespace muster::kube {

namespace {

struct Ask {
  std::string group, resource, name, verb;
};

std::string verb_of(const Request& request, const std::string& name) {
  switch (request.method) {
    case Method::get:
      if (query(request, "watch") == "true") return "watch";
      return name.empty() ? "list" : "get";
    case Method::post:
      return "create";
    case Method::put:
      return "update";
    case Method::patch:
      return "patch";
    case Method::remove:
      break;
  }
  return "delete";
}

Ask asked_by(const Request& request) {
  std::vector<std::string> parts = segments(request.path);
  Ask ask;
  if (parts.at(0) == "apis") ask.group = parts.at(1);
  size_t at = ask.group.empty() ? 2 : 3;
  if (parts.at(at) == "namespaces" && parts.size() > at + 2) at += 2;
  ask.resource = parts.at(at);
  if (parts.size() > at + 1) ask.name = parts[at + 1];
  if (parts.size() > at + 2) ask.resource += "/" + parts[at + 2];
  ask.verb = verb_of(request, ask.name);
  return ask;
}

bool contains(const Json& list, const std::string& value) {
  return std::ranges::any_of(list, [&](const Json& entry) { return entry == value; });
}

bool allows(const Json& rule, const Ask& ask) {
  const Json& names = member(rule, "resourceNames");
  return contains(member(rule, "apiGroups"), ask.group) &&
         contains(member(rule, "resources"), ask.resource) &&
         contains(member(rule, "verbs"), ask.verb) &&
         (names.is_null() || contains(names, ask.name));
}

// Of each owner that a creation would keep from going.
std::vector<Ask> asked_of_owners(const Request& request) {
  std::vector<Ask> asks;
  if (request.method != Method::post) return asks;
  const Json object = Json::parse(request.body, nullptr, false);
  for (const Json& owner : member(member(object, "metadata"), "ownerReferences")) {
    if (!bool_or(owner, "blockOwnerDeletion", false)) continue;
    const std::string version = string_or(owner, "apiVersion", "");
    asks.push_back({version.substr(0, version.find('/')), plural_of(owner) + "/finalizers",
                    string_or(owner, "name", ""), "update"});
  }
  return asks;
}

std::vector<Json> rules_of(const std::vector<std::string>& roles) {
  const std::string text = read_file(MUSTER_SOURCE_DIR "/deploy/muster.yaml");
  const std::string between = "\n---\n";
  std::vector<Json> rules;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(between, begin), text.size());
    const Json object =
        Document::parse(text.substr(begin, end - begin), "deploy/muster.yaml").value();
    const bool is_role = string_or(object, "kind", "").ends_with("Role");
    const std::string name = string_or(member(object, "metadata"), "name", "");
    if (is_role && std::ranges::find(roles, name) != roles.end()) {
      for (const Json& rule : object["rules"]) rules.push_back(rule);
    }
    begin = end + between.size();
  }
  EXPECT_FALSE(rules.empty());
  return rules;
}

}  // namespace

std::function<bool(const Request&)> chart_rights(const std::vector<std::string>& roles) {
  return [rules = rules_of(roles)](const Request& request) {
    std::vector<Ask> asks = asked_of_owners(request);
    asks.push_back(asked_by(request));
    return std::ranges::all_of(asks, [&](const Ask& ask) {
      return std::ranges::any_of(rules, [&](const Json& rule) { return allows(rule, ask); });
    });
  };
}

}  // namespace muster::kube
