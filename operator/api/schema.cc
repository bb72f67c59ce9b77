#include "operator/api/schema.h"

#include <re2/re2.h>

#include "embedded/replica_schema_text.h"
#include "embedded/trainingjob_schema_text.h"
#include "trainer/spec/schema.h"

namespace muster::api {

namespace {

Json replica_schema(const std::string& role) {
  static const std::map<std::string, const char*> descriptions = {
      {"ps", "Parameter servers: hold the parameters and apply updates."},
      {"chief", "The chief: a worker that also saves checkpoints and leads the group."},
      {"master", "Another name of the chief."},
      {"worker", "Workers: compute gradients."},
      {"evaluator", "The evaluator: evaluates each checkpoint beside the training."},
  };
  Json schema = Document::parse(replica_schema_text, "replica.schema.yaml").value();
  schema["description"] = descriptions.at(role);
  Json& properties = schema["properties"];
  if (role != "ps") properties.erase("replication");
  if (role == "chief" || role == "master") properties["replicas"]["minimum"] = 1;
  if (role != "ps" && role != "worker") properties["replicas"]["maximum"] = 1;
  return schema;
}

// Returns a rule's CEL with the names of x-rule-parts replaced by these parts.
std::string expand(const std::string& text, const Json& parts, const std::string& argument = "") {
  static const RE2 kReference(R"((.*?)\$(\w+)(?:\(([^()]*)\))?)");
  std::string result, before, name, given;
  re2::StringPiece rest(text);
  while (RE2::Consume(&rest, kReference, &before, &name, &given)) {
    result += before;
    result +=
        name == "1" ? argument : expand(parts.at(name), parts, expand(given, parts, argument));
  }
  return result.append(rest.data(), rest.size());
}

void expand_rules(Json& schema, const Json& parts) {
  if (const auto rules = schema.find("x-kubernetes-validations"); rules != schema.end()) {
    for (Json& rule : *rules) rule["rule"] = expand(rule["rule"], parts);
  }
  if (const auto properties = schema.find("properties"); properties != schema.end()) {
    for (auto& [name, property] : properties->items()) expand_rules(property, parts);
  }
}

// Returns the CEL that compares all fields of `training` except its length (epochs and steps).
std::string same_but_length(const Json& training) {
  std::string all;
  for (const auto& [name, property] : training["properties"].items()) {
    if (name == "epochs" || name == "steps") continue;
    all += (all.empty() ? "" : " && ") + std::string("$same(spec.training.") + name + ")";
  }
  return all;
}

Json build_schema() {
  Json schema = Document::parse(trainingjob_schema_text, "trainingjob.schema.yaml").value();
  Json training = spec::training_schema();
  schema["x-rule-parts"]["sameTrainingButLength"] = same_but_length(training);
  expand_rules(schema, schema["x-rule-parts"]);
  training["nullable"] = true;
  training["description"] =
      "What muster-trainer trains, and how; left out by a job that brings its own image. "
      "Changes only while the job is suspended; but a job that has succeeded may be given more "
      "epochs or steps, and trains on to them.";
  Json& spec = schema["properties"]["spec"]["properties"];
  spec["training"] = std::move(training);
  for (const char* role : {"ps", "chief", "master", "worker", "evaluator"}) {
    spec["replicaSpecs"]["properties"][role] = replica_schema(role);
  }
  return schema;
}

}  // namespace

const Json& training_job_schema() {
  static const Json schema = build_schema();
  return schema;
}

}  // namespace muster::api
