#include "operator/kube/tfjob/companion.h"

#include <regex>

#include "common/documents/json.h"
#include "operator/api/templates.h"
#include "operator/api/training_job.h"
#include "operator/api/validate.h"
#include "operator/convert/tfjob.h"
#include "operator/kube/api/metadata.h"
#include "operator/kube/pods/pods.h"

namespace muster::kube {

namespace {

constexpr size_t kLongestLabel = 63;  // the TFJob's name is one of the labels of its pods
constexpr const char* kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

std::string text_of(const Json& tfjob) {
  return "TFJob " + name_of(tfjob).key();
}

// A TFJob may set variables that a TrainingJob may not set, because the operator sets them.
void drop_reserved_variables(Json& replica_specs) {
  for (Json& replica : replica_specs)
    if (member(member(replica["template"], "spec"), "containers").is_array())
      drop_variables(replica["template"]["spec"]["containers"], api::is_reserved);
}

}  // namespace

bool is_taken(const Json& tfjob, TakenTfJobs taken) {
  if (taken == TakenTfJobs::none) return false;
  const std::string manager = string_or(member(member(tfjob, "spec"), "runPolicy"), "managedBy",
                                        convert::kTrainingOperator);
  return manager == api::kManagedByMuster ||
         (taken == TakenTfJobs::all && (manager == convert::kTrainingOperator || manager.empty()));
}

std::string generation_of(const Json& tfjob) {
  return std::to_string(integer_or(member(tfjob, "metadata"), "generation", 0));
}

std::string tfjob_generation_of(const Json& companion) {
  return string_or(member(member(companion, "metadata"), "annotations"), kTfJobGenerationAnnotation,
                   "");
}

namespace {

// Adds to `renamed` the paths that differ between the TFJob and the companion.
Json make_companion(const Json& tfjob, const std::string& gang_scheduler,
                    std::vector<Document::Renamed>& renamed) {
  const std::string name = name_of(tfjob).name;
  static const std::regex kLabel("[a-z]([-a-z0-9]*[a-z0-9])?");
  if (!std::regex_match(name, kLabel))
    throw Invalid(
        "metadata.name: expected small letters, digits and -, beginning with a letter and not "
        "ending with -, because Services are named after it; found \"" +
        name + "\"");
  if (name.size() > kLongestLabel)
    throw Invalid("metadata.name: expected at most " + std::to_string(kLongestLabel) +
                  " bytes, found " + std::to_string(name.size()));
  Json manifest = tfjob;
  manifest.erase("status");
  const Json metadata = manifest["metadata"];
  Json& kept = manifest["metadata"] = Json::object();
  for (const char* field : {"name", "namespace", "labels", "annotations"})
    if (metadata.contains(field)) kept[field] = metadata[field];
  if (kept.contains("annotations")) kept["annotations"].erase(kLastApplied);
  convert::Converted converted =
      convert::convert_tfjob(Document::of(std::move(manifest), text_of(tfjob)));
  renamed = std::move(converted.renamed);
  Json& job = converted.job;
  Json& spec = job["spec"];
  spec.erase("managedBy");
  if (!spec.contains("suspend")) spec["suspend"] = false;  // explicit, whatever the default is
  spec["runPolicy"].erase("ttlSecondsAfterFinished");      // the job is deleted with its TFJob
  drop_reserved_variables(spec["replicaSpecs"]);
  if (gang_scheduler.empty())
    spec.erase("schedulingPolicy");
  else
    spec["schedulingPolicy"]["gang"] = gang_scheduler;
  Json& made = job["metadata"];
  made["annotations"][kTfJobGenerationAnnotation] = generation_of(tfjob);
  made["ownerReferences"] = Json::array({{{"apiVersion", tfjobs().api_version()},
                                          {"kind", tfjobs().kind},
                                          {"name", name},
                                          {"uid", uid_of(tfjob)},
                                          {"controller", true}}});
  return std::move(job);
}

}  // namespace

Json companion_of(const Json& tfjob, const std::string& gang_scheduler) {
  std::vector<Document::Renamed> renamed;
  return make_companion(tfjob, gang_scheduler, renamed);
}

std::string companion_problems(const Json& tfjob, const std::string& gang_scheduler) {
  std::vector<Document::Renamed> renamed;
  const Json companion = make_companion(tfjob, gang_scheduler, renamed);
  Json manifest = {{"apiVersion", companion.at("apiVersion")},
                   {"kind", companion.at("kind")},
                   {"metadata", {{"name", companion.at("metadata").at("name")}}},
                   {"spec", companion.at("spec")}};
  Document document =
      Document::of(std::move(manifest), Document::of(tfjob, text_of(tfjob)), std::move(renamed));
  std::string text;
  for (const Problem& problem : api::validate_for_cluster(document))
    text += (text.empty() ? "" : "\n") + problem.text();
  return text;
}

}  // namespace muster::kube
