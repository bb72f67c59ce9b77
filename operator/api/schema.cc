#include "embedded/replica_schema_text.h"
#include "embedded/trainingjob_schema_text.h"
#include "operator/api/training_job.h"
#include "trainer/spec/training_spec.h"

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

Json build_schema() {
  Json schema = Document::parse(trainingjob_schema_text, "trainingjob.schema.yaml").value();
  Json& spec = schema["properties"]["spec"]["properties"];
  spec["training"] = spec::training_schema();
  spec["training"]["nullable"] = true;
  spec["training"]["description"] =
      "What muster-trainer trains, and how; left out by a job that brings its own image. "
      "Changes only while the job is suspended.";
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
