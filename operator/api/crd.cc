#include "operator/api/crd.h"

#include <string>

#include "embedded/crd_text.h"
#include "operator/api/rules.h"
#include "operator/api/training_job.h"

namespace muster::api {

namespace {

constexpr const char* kRules = "x-kubernetes-validations";

// Kubernetes asks the rules of a field about its default as it stands, before what is within has
// got defaults of its own.
void fill_default(Json& schema) {
  Document filled = Document::parse("{}", "default");
  apply_schema(schema, filled);
  schema["default"] = std::move(filled.value());
}

// Kubernetes takes a null for a field that is left out, unless it is `nullable`: only where null
// and the default are two things may that stay. Lists are replaced whole unless they say more.
void make_structural(Json& schema) {
  if (!schema.contains("default")) schema.erase("nullable");
  if (schema.value("default", Json()) == Json::object()) fill_default(schema);
  if (schema.value("type", "") == "array" && !schema.contains("x-kubernetes-list-type")) {
    schema["x-kubernetes-list-type"] = "atomic";
  }
  if (const auto properties = schema.find("properties"); properties != schema.end()) {
    for (auto& [name, property] : properties->get_ref<Json::object_t&>()) make_structural(property);
  }
  for (const char* inner : {"items", "additionalProperties"}) {
    if (const auto of = schema.find(inner); of != schema.end()) make_structural(*of);
  }
}

// What the API server itself knows of every object: all but the limits of a name.
void leave_to_kubernetes(Json& schema) {
  Json& properties = schema["properties"];
  for (const char* name : {"apiVersion", "kind"}) properties[name].erase("enum");
  Json name = properties["metadata"]["properties"]["name"];
  name.erase("description");
  properties["metadata"] = {{"type", "object"}, {"properties", {{"name", name}}}};
  schema["required"] = {"spec"};
}

Json& schema_at(Json& schema, const std::string& path) {
  Json* at = &schema;
  for (const std::string& step : split_path(path)) at = &at->at("properties").at(step);
  return *at;
}

void add_rule(Json& schema, Json rule) {
  Json& rules = schema[kRules];
  if (rules.is_null()) rules = Json::array();
  rules.push_back(std::move(rule));
}

Json validation(const Rule& rule) {
  Json value = {{"rule", rule.cel}, {"message", std::string("expected ") + rule.expected}};
  if (rule.found == nullptr) value["reason"] = "FieldValueForbidden";
  if (*rule.blame != '\0') value["fieldPath"] = std::string(".") + rule.blame;
  return value;
}

}  // namespace

Json custom_resource_definition() {
  Json schema = training_job_schema();
  make_structural(schema);
  leave_to_kubernetes(schema);
  for (const Rule& rule : rules()) add_rule(schema_at(schema, rule.path), validation(rule));
  Json definition = Document::parse(crd_text, "crd.yaml").value();
  definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = std::move(schema);
  return definition;
}

}  // namespace muster::api
