#include "operator/convert/tfjob.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "common/digest.h"
#include "common/documents/json.h"
#include "common/documents/problems.h"
#include "common/documents/schema.h"
#include "common/exit_code.h"
#include "embedded/tfjob_schema_text.h"

namespace muster::convert {

namespace {

constexpr const char* kReplicaSpecs = "spec.tfReplicaSpecs";
constexpr int kUnlimited = 100'000;  // the largest backoffLimit
constexpr int kFirstSignal = 128;    // exit codes from this one on mean signals
constexpr int kPort = 2222;

std::string in_small_letters(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Returns the type names of the manifest by their roles. Reports unknown and repeated types.
std::map<std::string, std::string> types_by_role(const Document& manifest, Problems& problems) {
  constexpr std::array<const char*, 5> kRoles = {"ps", "chief", "master", "worker", "evaluator"};
  std::map<std::string, std::string> types;
  for (const auto& [type, replica] : manifest.find(kReplicaSpecs)->items()) {
    const std::string path = std::string(kReplicaSpecs) + "." + type;
    const std::string role = in_small_letters(type);
    if (std::ranges::find(kRoles, role) == kRoles.end()) {
      problems.report(path, "PS, Chief, Master, Worker or Evaluator", "\"" + type + "\"");
    } else if (!types.emplace(role, type).second) {
      problems.report(path, "each type once", "\"" + types[role] + "\" and \"" + type + "\"");
    }
  }
  if (types.contains("chief") && types.contains("master"))
    problems.report(std::string(kReplicaSpecs) + "." + types["master"],
                    "a Chief or a Master, which are two names of one type", "both");
  return types;
}

void require_valid(Document& manifest, std::map<std::string, std::string>& types) {
  static const Json schema = Document::parse(tfjob_schema_text, "tfjob.schema.yaml").value();
  Problems problems(manifest);
  problems.add(apply_schema(schema, manifest));
  if (problems.is_sound(kReplicaSpecs)) types = types_by_role(manifest, problems);
  require_no_problems(problems.sorted(), kBadInput);
}

class TfJobConversion {
 public:
  TfJobConversion(const Json& manifest, std::map<std::string, std::string> types)
      : manifest_(manifest),
        spec_(manifest.at("spec")),
        policy_(member(spec_, "runPolicy")),
        types_(std::move(types)) {}

  Converted run() {
    result_.renamed = {
        {"spec.suspend", "spec.runPolicy.suspend"},
        {"spec.managedBy", "spec.runPolicy.managedBy"},
        {"spec.successPolicy.decidedBy", "spec.successPolicy"},
        {"spec.schedulingPolicy.timeout", "spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds"},
        {"spec.schedulingPolicy", "spec.runPolicy.schedulingPolicy"}};
    Json& job = result_.job;
    job = {{"apiVersion", "muster.dev/v1alpha1"}, {"kind", "TrainingJob"}};
    for (const char* field : {"name", "namespace", "labels", "annotations"})
      copy(manifest_["metadata"], field, job["metadata"], field);
    job["metadata"]["name"] = job_name_of_tfjob(job["metadata"]["name"]);
    copy(policy_, "suspend", job["spec"], "suspend");
    set_managed_by();
    set_replicas();
    set_ends();
    copy(spec_, "enableDynamicWorker", job["spec"], "enableDynamicWorker");
    set_scheduling();
    set_limits();
    return std::move(result_);
  }

 private:
  static void copy(const Json& from, const char* field, Json& to, const char* as) {
    if (const Json& value = member(from, field); !value.is_null()) to[as] = value;
  }
  bool has(const char* role) const { return types_.contains(role); }
  bool has_chief() const { return has("chief") || has("master"); }
  Json& spec() { return result_.job["spec"]; }
  void not_carried(const std::string& field, const std::string& why) {
    result_.not_carried.push_back(field + ": " + why);
  }

  void set_managed_by() {
    const std::string manager = string_or(policy_, "managedBy", kTrainingOperator);
    if (manager != kTrainingOperator) spec()["managedBy"] = manager;
  }

  void set_replicas() {
    for (const auto& [role, type] : types_) {
      const Json& original = spec_["tfReplicaSpecs"][type];
      Json& replica = spec()["replicaSpecs"][role];
      result_.renamed.push_back({"spec.replicaSpecs." + role, path_of(type)});
      replica["replicas"] = integer_or(original, "replicas", 1);
      set_restarts(role, type, string_or(original, "restartPolicy", "Never"), replica);
      replica["template"] = original["template"];
      // The restart policy of the type applies, whatever the template says.
      if (Json& pod = replica["template"]["spec"]; pod.is_object()) {
        pod.erase("restartPolicy");
        check_ports(type, pod);
      }
    }
  }

  void set_restarts(const std::string& role, const std::string& type, const std::string& policy,
                    Json& replica) {
    const bool never = policy == "Never" || policy.empty();
    replica["restartPolicy"] = never ? "Never" : "OnFailure";
    restarts_ = restarts_ || !never;
    if (policy == "Always")
      not_carried(path_of(type) + ".restartPolicy",
                  "Always; a replica that ends with exit code 0 has succeeded and is not started "
                  "again");
    if (policy != "ExitCode") return;
    Json codes = Json::array();
    for (int code = 1; code < kFirstSignal; ++code) codes.push_back(code);
    rules_.push_back(
        {{"onExitCodes", codes}, {"roles", Json::array({role})}, {"action", "FailJob"}});
  }

  void check_ports(const std::string& type, const Json& pod) {
    for (const Json& container : member(pod, "containers")) {
      for (const Json& port : member(container, "ports")) {
        if (string_or(port, "name", "") != "tfjob-port" ||
            integer_or(port, "containerPort", kPort) == kPort)
          continue;
        not_carried(path_of(type) + ".template: port tfjob-port",
                    std::to_string(integer_or(port, "containerPort", kPort)) +
                        "; TF_CONFIG says port 2222 of every replica");
      }
    }
  }

  void set_ends() {
    if (!has_chief()) {
      const bool all = string_or(spec_, "successPolicy", "") == "AllWorkers";
      spec()["successPolicy"]["decidedBy"] = all ? "allWorkers" : "workerZero";
    }
    if (!rules_.empty()) spec()["failurePolicy"]["rules"] = rules_;
    if (has("evaluator"))
      not_carried(path_of(types_["evaluator"]), "its failure fails a TFJob, but no TrainingJob");
  }

  void set_scheduling() {
    const Json& original = member(policy_, "schedulingPolicy");
    if (original.is_null()) return;
    Json& scheduling = spec()["schedulingPolicy"];
    scheduling = Json::object();
    copy(original, "minAvailable", scheduling, "minAvailable");
    for (const char* field : {"queue", "priorityClass"})
      if (!string_or(original, field, "").empty()) copy(original, field, scheduling, field);
    copy(original, "scheduleTimeoutSeconds", scheduling, "timeout");
    result_.to_set.emplace_back(
        "spec.schedulingPolicy.gang: volcano or scheduler-plugins; for TFJobs the "
        "training-operator's option --gang-scheduler-name says it");
    if (!member(original, "minResources").is_null())
      not_carried("spec.runPolicy.schedulingPolicy.minResources",
                  "a gang's resources are those that its pods request");
  }

  void set_limits() {
    Json& limits = spec()["runPolicy"];
    limits["backoffLimit"] =
        std::min<int64_t>(integer_or(policy_, "backoffLimit", kUnlimited), kUnlimited);
    if (!restarts_ && member(policy_, "backoffLimit").is_null()) limits.erase("backoffLimit");
    copy(policy_, "activeDeadlineSeconds", limits, "activeDeadlineSeconds");
    copy(policy_, "ttlSecondsAfterFinished", limits, "ttlSecondsAfterFinished");
    limits["cleanPodPolicy"] = string_or(policy_, "cleanPodPolicy", "None");
  }

  static std::string path_of(const std::string& type) {
    return std::string(kReplicaSpecs) + "." + type;
  }

  const Json& manifest_;
  const Json& spec_;
  const Json& policy_;
  std::map<std::string, std::string> types_;  // by role
  Json rules_ = Json::array();
  bool restarts_ = false;  // a role is started again after a failure
  Converted result_;
};

}  // namespace

bool is_kubeflow_job(const Document& manifest) {
  return string_or(manifest.value(), "apiVersion", "").starts_with("kubeflow.org/") ||
         string_or(manifest.value(), "kind", "") == "TFJob";
}

std::string job_name_of_tfjob(const std::string& tfjob_name) {
  constexpr size_t kLongest = 40;  // longest name of a TrainingJob
  constexpr size_t kDigestLength = 8;
  if (tfjob_name.size() <= kLongest) return tfjob_name;
  return tfjob_name.substr(0, kLongest - kDigestLength - 1) + "-" +
         sha256(tfjob_name).substr(0, kDigestLength);
}

Converted convert_tfjob(Document manifest) {
  std::map<std::string, std::string> types;
  require_valid(manifest, types);
  return TfJobConversion(manifest.value(), std::move(types)).run();
}

}  // namespace muster::convert
