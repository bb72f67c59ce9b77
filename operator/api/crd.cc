#include "operator/api/crd.h"

#include <string>

#include "common/documents/schema.h"
#include "embedded/crd_text.h"
#include "operator/api/schema.h"

namespace muster::api {

namespace {

// Fills in the defaults of the fields within a default. Kubernetes checks a field's rules on its
// default as written, before the fields within that default get their own defaults.
void fill_default(Json& schema) {
  Document filled = Document::parse("{}", "default");
  apply_schema(schema, filled);
  schema["default"] = std::move(filled.value());
}

// Kubernetes takes a null for a field that is left out, unless the field is `nullable`: so
// `nullable` stays only on a field whose default differs from null. Lists are replaced as a whole
// unless the schema says otherwise. The API server knows only the CEL part of a rule.
void make_structural(Json& schema) {
  if (const auto rules = schema.find("x-kubernetes-validations"); rules != schema.end()) {
    for (Json& rule : *rules) {
      for (const char* ours : {"check", "reads"}) rule.erase(ours);
    }
  }
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

// Removes the parts of the metadata's schema that the API server checks for every object:
// everything except the limits of the name.
void leave_to_kubernetes(Json& schema) {
  Json& properties = schema["properties"];
  for (const char* name : {"apiVersion", "kind"}) properties[name].erase("enum");
  Json name = properties["metadata"]["properties"]["name"];
  name.erase("description");
  properties["metadata"] = {{"type", "object"}, {"properties", {{"name", name}}}};
  schema["required"] = {"spec"};
  schema.erase("x-rule-parts");
}

}  // namespace

Json custom_resource_definition() {
  Json schema = training_job_schema();
  make_structural(schema);
  leave_to_kubernetes(schema);
  Json definition = Document::parse(crd_text, "crd.yaml").value();
  definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = std::move(schema);
  return definition;
}

}  // namespace muster::api
