#include "operator/api/crd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "common/documents/json.h"
#include "operator/api/rules.h"
#include "operator/api/training_job.h"
#include "operator/api/validate.h"

namespace muster::api {
namespace {

using ::testing::HasSubstr;

constexpr const char* kRules = "x-kubernetes-validations";
constexpr const char* kRefused = MUSTER_SOURCE_DIR "/tests/fixtures/trainingjob/refused.yaml";

using Visitor = std::function<void(const Json& schema, const std::string& path)>;

void visit(const Json& schema, const std::string& path, const Visitor& visitor) {
  visitor(schema, path);
  for (const auto& [name, property] : member(schema, "properties").items()) {
    visit(property, child_path(path, name), visitor);
  }
  if (schema.contains("items")) visit(schema["items"], path + "[]", visitor);
  if (schema.contains("additionalProperties")) {
    visit(schema["additionalProperties"], path + ".*", visitor);
  }
}

const Json& schema_of(const Json& definition) {
  return definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
}

void visit_definition(const Visitor& visitor) {
  static const Json definition = custom_resource_definition();
  visit(schema_of(definition), "", visitor);
}

TEST(CustomResourceDefinition, DescribesEveryField) {
  int fields = 0;
  visit_definition([&](const Json& schema, const std::string& path) {
    const bool of_kubernetes = path.starts_with("metadata");
    const bool plain_item = path.ends_with("[]") && member(schema, "type") != "object";
    EXPECT_TRUE(of_kubernetes || plain_item || string_or(schema, "description", "").size() > 3)
        << path;
    ++fields;
  });
  EXPECT_GT(fields, 300);
}

// A comma in a description that is not quoted makes a keyword of what follows it.
TEST(CustomResourceDefinition, IsAStructuralSchema) {
  static const std::set<std::string> kKeywords = {"type",
                                                  "description",
                                                  "default",
                                                  "nullable",
                                                  "properties",
                                                  "additionalProperties",
                                                  "required",
                                                  "items",
                                                  "enum",
                                                  "format",
                                                  "pattern",
                                                  "minimum",
                                                  "maximum",
                                                  "exclusiveMinimum",
                                                  "exclusiveMaximum",
                                                  "minLength",
                                                  "maxLength",
                                                  "minItems",
                                                  "maxItems",
                                                  "minProperties",
                                                  "maxProperties",
                                                  "x-kubernetes-list-type",
                                                  "x-kubernetes-list-map-keys",
                                                  "x-kubernetes-map-type",
                                                  "x-kubernetes-preserve-unknown-fields",
                                                  "x-kubernetes-int-or-string",
                                                  kRules};
  visit_definition([](const Json& schema, const std::string& path) {
    for (const auto& [keyword, unused] : schema.items()) {
      EXPECT_TRUE(kKeywords.contains(keyword)) << path << ": " << keyword;
    }
    EXPECT_NE(schema.contains("type"), schema.contains("x-kubernetes-int-or-string")) << path;
    const bool is_array = schema.value("type", "") == "array";
    EXPECT_EQ(is_array, schema.contains("items")) << path;
    EXPECT_EQ(is_array, schema.contains("x-kubernetes-list-type")) << path;
    EXPECT_FALSE(schema.contains("properties") && schema.contains("additionalProperties")) << path;
    // A null is the same as a field left out, but where a default would take its place.
    EXPECT_TRUE(!schema.contains("nullable") || schema.contains("default")) << path;
    for (const char* strict : {"exclusiveMinimum", "exclusiveMaximum"}) {
      EXPECT_TRUE(!schema.contains(strict) || schema[strict].is_boolean()) << path;
    }
  });
}

// Kubernetes reckons with the most that a rule can cost.
TEST(CustomResourceDefinition, BoundsEveryListOfTheSpec) {
  visit_definition([](const Json& schema, const std::string& path) {
    if (!path.starts_with("spec")) return;
    EXPECT_EQ(schema.value("type", "") == "array", schema.contains("maxItems")) << path;
  });
}

TEST(CustomResourceDefinition, StatesEveryRuleInTheWordsOfValidate) {
  std::map<std::string, Json> stated;  // by path and CEL
  visit_definition([&](const Json& schema, const std::string& path) {
    for (const Json& rule : member(schema, kRules)) {
      stated[path + ": " + rule.at("rule").get<std::string>()] = rule;
    }
  });
  for (const Rule& rule : rules()) {
    const Json& found = stated[rule.path + ": " + rule.cel];
    ASSERT_TRUE(found.is_object()) << rule.cel;
    EXPECT_EQ(found["message"], "expected " + rule.expected);
    EXPECT_EQ(string_or(found, "fieldPath", ""), rule.blame.empty() ? "" : "." + rule.blame);
  }
  for (const auto& [key, rule] : stated) {
    EXPECT_THAT(key, testing::Not(testing::ContainsRegex("[$][A-Za-z0-9_]"))) << "a part's name";
    for (const char* ours : {"check", "reads"}) EXPECT_FALSE(rule.contains(ours)) << key;
    EXPECT_THAT(string_or(rule, "message", string_or(rule, "messageExpression", "")),
                HasSubstr("expected "))
        << key;
  }
}

TEST(CustomResourceDefinition, SaysWhatHoldsOfEachRoleForAllOfThem) {
  const auto speaks_of_all = [](const Rule& rule, const std::string& before) {
    return std::ranges::all_of(
        std::initializer_list<const char*>{"ps", "chief", "master", "worker", "evaluator"},
        [&](const char* role) { return rule.cel.find(before + role) != std::string::npos; });
  };
  const auto count = [&](const std::string& before) {
    return std::ranges::count_if(rules(),
                                 [&](const Rule& rule) { return speaks_of_all(rule, before); });
  };
  EXPECT_EQ(count("oldSelf.spec.replicaSpecs."), 1);
  EXPECT_EQ(count("has(roles."), 1);
}

TEST(CustomResourceDefinition, ShowsAJobByPathsThatTheSchemaHas) {
  const Json definition = custom_resource_definition();
  const Json& version = definition["spec"]["versions"][0];
  const auto expect_known = [&](const std::string& path) {
    const Json* at = &schema_of(definition);
    for (const std::string& step : split_path(path.substr(1))) {
      if (step == "creationTimestamp") return;
      at = at->contains("additionalProperties") ? &(*at)["additionalProperties"]
                                                : &member(member(*at, "properties"), step);
      ASSERT_TRUE(at->is_object()) << path;
    }
  };
  for (const Json& column : version["additionalPrinterColumns"]) {
    const std::string path = column["jsonPath"];
    EXPECT_THAT(path, testing::Not(HasSubstr("[-1"))) << "by its place in the list";
    expect_known(path.substr(0, path.find("[?(@.type==")));
  }
  for (const auto& [name, path] : version["subresources"]["scale"].items()) {
    expect_known(path.get<std::string>());
  }
}

enum class Change { never, while_suspended, always };

// The contract, field by field: one that is new must say here what may become of it.
const std::map<std::string, Change> kChanges = {
    {"suspend", Change::always},
    {"managedBy", Change::never},
    {"strategy", Change::always},  // no replica reads it; what must fit it, roles, is kept
    {"training", Change::while_suspended},
    {"storage", Change::while_suspended},
    {"replicaSpecs", Change::while_suspended},  // the set of roles
    {"replicaSpecs.worker.replicas", Change::always},
    {"replicaSpecs.worker.restartPolicy", Change::always},
    {"replicaSpecs.worker.template", Change::while_suspended},
    {"successPolicy", Change::always},
    {"failurePolicy", Change::always},
    {"elastic", Change::while_suspended},
    {"security", Change::while_suspended},
    {"enableDynamicWorker", Change::always},
    {"startupPolicy", Change::always},
    {"schedulingPolicy", Change::always},
    {"runPolicy", Change::always},
};

TEST(CustomResourceDefinition, SaysOfEveryFieldWhetherItMayChange) {
  static const Json definition = custom_resource_definition();
  std::string rule_of_job;
  for (const Json& rule : member(schema_of(definition), kRules)) {
    const std::string text = rule["rule"];
    if (text.find("oldSelf") != std::string::npos) rule_of_job += text + "\n";
  }
  std::set<std::string> fields;
  visit_definition([&](const Json& schema, const std::string& path) {
    const bool of_worker = path.starts_with("spec.replicaSpecs.worker.");
    const auto depth = std::ranges::count(path, '.');
    if (!path.starts_with("spec.") || depth != (of_worker ? 3 : 1)) return;
    const std::string field = path.substr(5);
    fields.insert(field);
    ASSERT_TRUE(kChanges.contains(field)) << field;
    const Change change = kChanges.at(field);
    const std::string description = string_or(schema, "description", "");
    const auto says = [&](const char* text) { return description.find(text) != std::string::npos; };
    bool kept = false;
    for (const Json& rule : member(schema, kRules))
      kept = kept || rule["rule"] == "self == oldSelf";
    EXPECT_EQ(kept, change == Change::never) << field;
    EXPECT_EQ(says("Cannot be changed"), change == Change::never) << field;
    if (field == "suspend") return;  // which says what it lets change
    EXPECT_EQ(says("while the job is suspended"), change == Change::while_suspended) << field;
    EXPECT_EQ(rule_of_job.find("self.spec." + field) != std::string::npos,
              change == Change::while_suspended)
        << field;
  });
  EXPECT_EQ(fields.size(), kChanges.size());
}

struct Refusal {
  Document document;
  Json entry;
};

std::vector<Refusal> refusals() {
  const Document table = Document::load(kRefused);
  std::vector<Refusal> list;
  for (const Json& entry : table.value()["cases"]) {
    Document document =
        Document::parse(table.value()["jobs"][entry["job"].get<std::string>()].dump(), "job.yaml");
    for (const auto& [path, value] : entry["set"].items()) document.set(path, value.dump());
    list.push_back({std::move(document), entry});
  }
  return list;
}

TEST(Refused, ByValidateAboutTheFieldOfTheTable) {
  for (Refusal& refusal : refusals()) {
    bool found = false;
    std::string all;
    for (const Problem& problem : validate(refusal.document)) {
      all += problem.text() + "\n";
      found = found || (refusal.entry["field"] == problem.path &&
                        problem.expected.starts_with(refusal.entry["expected"].get<std::string>()));
    }
    EXPECT_TRUE(found) << refusal.entry.dump() << "\n" << all;
  }
}

// Every rule about a manifest alone has a job in the table that breaks it; tests/integration/kube
// shows that to a server.
TEST(Refused, ByEveryRuleOfTheDefinition) {
  std::set<std::string> expected, fields;
  for (const Refusal& refusal : refusals()) {
    const Json& entry = refusal.entry;
    if (string_or(entry, "server", "") == "accepts") continue;
    expected.insert("expected " + entry["expected"].get<std::string>());
    expected.insert(string_or(entry, "server", ""));
    fields.insert(string_or(entry, "server_field", entry["field"]));
  }
  visit_definition([&](const Json& schema, const std::string& path) {
    for (const Json& rule : member(schema, kRules)) {
      if (rule["rule"].get<std::string>().find("oldSelf") != std::string::npos) continue;
      if (rule.contains("message")) {
        EXPECT_TRUE(expected.contains(rule["message"])) << rule["message"];
      } else {
        const std::string field = path + rule["fieldPath"].get<std::string>();
        EXPECT_TRUE(path.find("[]") != std::string::npos || fields.contains(field)) << field;
      }
    }
  });
}

}  // namespace
}  // namespace muster::api
