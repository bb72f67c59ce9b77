#include "operator/api/pod_template.h"

#include "common/documents/json.h"
#include "common/documents/schema.h"
#include "embedded/pod_template_schema_text.h"

namespace muster::api {

namespace {

const Json& definitions() {
  static const Json all =
      Document::parse(pod_template_schema_text, "pod_template.schema.yaml").value();
  return all;
}

// Returns the schema with each $ref replaced by its type. As everywhere in Kubernetes, null stands
// for a field that is left out.
Json expand(Json schema) {
  if (const auto named = schema.find("$ref"); named != schema.end())
    return expand(definitions()["types"][named->get<std::string>()]);
  for (const char* inner : {"items", "additionalProperties"})
    if (schema.contains(inner)) schema[inner] = expand(schema[inner]);
  if (schema.contains("properties"))
    for (auto& [name, field] : schema["properties"].items()) field = expand(field);
  schema["nullable"] = true;
  return schema;
}

std::string text_of(const Problem& problem) {
  const std::string release = "Kubernetes " + definitions()["version"].get<std::string>();
  const std::string begin = problem.where + ": " + problem.shown_path() + ": ";
  if (!problem.unknown_field)
    return begin + release + " expects " + problem.expected + ", found " + problem.found;
  return begin + release + " knows no such field" +
         (problem.hint.empty() ? "" : "; " + problem.hint);
}

}  // namespace

const std::vector<std::string>& container_fields() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> found;
    for (const auto& [name, field] : definitions()["types"]["Container"]["properties"].items())
      found.push_back(name);
    return found;
  }();
  return names;
}

std::vector<std::string> template_notes(const Document& document) {
  static const Json schema = expand({{"$ref", "PodTemplateSpec"}});
  std::vector<std::string> notes;
  const Json* roles = document.find("spec.replicaSpecs");
  if (roles == nullptr || !roles->is_object()) return notes;
  Document copy = document;
  for (const auto& [role, replica] : roles->items()) {
    const std::string path = child_path("spec.replicaSpecs", role) + ".template";
    for (const Problem& problem : apply_schema(schema, copy, path))
      notes.push_back(text_of(problem));
  }
  return notes;
}

}  // namespace muster::api
