#include "operator/kube/kueue/workload.h"

#include <algorithm>
#include <charconv>

#include "common/digest.h"
#include "common/documents/json.h"
#include "operator/api/status.h"
#include "operator/kube/api/metadata.h"
#include "operator/kube/pods/names.h"

namespace muster::kube {

namespace {

constexpr const char* kGroup = "kueue.x-k8s.io";
constexpr const char* kVersion = "v1beta2";
constexpr const char* kAskedAnnotation = "muster.dev/asked";  // digest of the job's request
constexpr const char* kPodSetLabel = "kueue.x-k8s.io/podset";
constexpr const char* kWorkloadAnnotation = "kueue.x-k8s.io/workload";
constexpr const char* kTopologyGate = "kueue.x-k8s.io/topology";
constexpr const char* kRequiredTopology = "kueue.x-k8s.io/podset-required-topology";
constexpr const char* kPreferredTopology = "kueue.x-k8s.io/podset-preferred-topology";
constexpr const char* kAnyTopology = "kueue.x-k8s.io/podset-unconstrained-topology";
constexpr size_t kDigestLength = 5;
// The version of the digest. An operator with another version of digests must not mistake running
// jobs for changed jobs.
constexpr const char* kAskedVersion = "v1:";

// The fields of a pod from which Kueue computes its resources and finds a flavor.
constexpr const char* kCountedFields[] = {
    "affinity",  "nodeSelector",     "overhead",      "priorityClassName",         "resourceClaims",
    "resources", "runtimeClassName", "schedulerName", "topologySpreadConstraints", "tolerations"};

const Json* condition_of(const Json& workload, const std::string& type) {
  for (const Json& condition : member(member(workload, "status"), "conditions")) {
    if (string_or(condition, "type", "") == type) return &condition;
  }
  return nullptr;
}

bool is_true(const Json& workload, const std::string& type) {
  const Json* condition = condition_of(workload, type);
  return condition != nullptr && string_or(*condition, "status", "") == "True";
}

std::string message_of(const Json& workload, const std::string& type) {
  const Json* condition = condition_of(workload, type);
  return condition == nullptr ? "" : string_or(*condition, "message", "");
}

bool comes_and_goes(const api::TrainingJob& job, api::Role role) {
  return job.elastic && role == api::Role::worker;
}

Json counted_containers(const Json& containers) {
  Json counted = Json::array();
  for (const Json& container : containers) {
    Json& kept = counted.emplace_back(Json::object());
    for (const char* field : {"name", "image", "resources", "restartPolicy"})
      if (container.contains(field)) kept[field] = container[field];
  }
  return counted;
}

Json counted_spec(const Json& pod_spec) {
  Json spec = Json::object();
  for (const char* field : kCountedFields)
    if (pod_spec.contains(field)) spec[field] = pod_spec[field];
  for (const char* field : {"initContainers", "containers"})
    if (pod_spec.contains(field)) spec[field] = counted_containers(pod_spec[field]);
  return spec;
}

Json topology_request(const Json& annotations) {
  for (const auto& [annotation, field] :
       {std::pair{kRequiredTopology, "required"}, {kPreferredTopology, "preferred"}}) {
    const std::string level = string_or(annotations, annotation, "");
    if (!level.empty()) return {{field, level}, {"podIndexLabel", kIndexLabel}};
  }
  if (string_or(annotations, kAnyTopology, "") == "true")
    return {{"unconstrained", true}, {"podIndexLabel", kIndexLabel}};
  return nullptr;
}

Json pod_set_of(const api::TrainingJob& job, api::Role role, const api::ReplicaSpec& spec,
                const PodSettings& settings) {
  const Json pod = pod_of(job, {role, 0, 0, 0}, settings);
  Json metadata = Json::object();
  const Json& of_user = member(spec.pod_template, "metadata");
  for (const char* field : {"labels", "annotations"})
    if (member(of_user, field).is_object()) metadata[field] = of_user[field];
  Json set = {{"name", api::role_name(job, role)},
              {"count", spec.replicas},
              {"template", {{"metadata", metadata}, {"spec", counted_spec(pod["spec"])}}}};
  if (comes_and_goes(job, role))
    set["minCount"] = std::min(std::max(1, job.elastic->min_replicas), spec.replicas);
  Json topology = topology_request(member(metadata, "annotations"));
  if (!topology.is_null()) set["topologyRequest"] = std::move(topology);
  return set;
}

// Returns the digest of the job's request. Leaves out the operator's own defaults, which may differ
// between versions.
std::string asked_by(const api::TrainingJob& job) {
  Json asked = {{"device", member(job.training, "device")},
                {"devices", member(job.training, "devices")},
                {"priorityClass", member(job.scheduling_policy, "priorityClass")}};
  for (const auto& [role, spec] : job.replicas) {
    Json& of_role = asked[api::name_of(role)] = {{"template", spec.pod_template}};
    if (!comes_and_goes(job, role)) of_role["replicas"] = spec.replicas;
  }
  return kAskedVersion + sha256(asked.dump());
}

// Returns the name of the WorkloadPriorityClass that the Workload has, or "".
std::string priority_class_of(const Json& workload) {
  const Json& reference = member(member(workload, "spec"), "priorityClassRef");
  const bool of_queue = string_or(reference, "kind", "") == workload_priority_classes().kind;
  return of_queue ? string_or(reference, "name", "") : "";
}

bool is_placed_the_same(const Json& workload, const QueueRequest& request) {
  const Json& spec = member(workload, "spec");
  return string_or(spec, "queueName", "") == request.queue &&
         priority_class_of(workload) == request.priority_class &&
         integer_or(spec, "maximumExecutionTimeSeconds", 0) == request.most_seconds.value_or(0);
}

const Json* named(const Json& list, const std::string& name) {
  for (const Json& entry : list)
    if (string_or(entry, "name", "") == name) return &entry;
  return nullptr;
}

bool has_the_same_workers(const Json& workload, const api::TrainingJob& job) {
  const Json* workers = named(member(member(workload, "spec"), "podSets"), "worker");
  const int wanted = job.replicas.at(api::Role::worker).replicas;
  return workers != nullptr && integer_or(*workers, "count", 0) == wanted;
}

bool is_active(const Json& workload) {
  return bool_or(member(workload, "spec"), "active", true);
}

void join_list(Json& object, const char* field, const Json& entries) {
  if (!entries.is_array()) return;
  Json& list = object[field];
  if (!list.is_array()) list = Json::array();
  for (const Json& entry : entries)
    if (std::ranges::find(list, entry) == list.end()) list.push_back(entry);
}

void join_texts(Json& object, const char* field, const Json& entries) {
  if (!entries.is_object() || entries.empty()) return;
  Json& texts = object[field];
  if (!texts.is_object()) texts = Json::object();
  texts.update(entries);
}

// `placement` has nodeSelector and tolerations, and perhaps labels and annotations.
void join_placement(Json& pod_template, const Json& placement) {
  join_texts(pod_template["spec"], "nodeSelector", member(placement, "nodeSelector"));
  join_list(pod_template["spec"], "tolerations", member(placement, "tolerations"));
  join_texts(pod_template["metadata"], "labels", member(placement, "labels"));
  join_texts(pod_template["metadata"], "annotations", member(placement, "annotations"));
}

void place(Json& pod_template, const Json& workload, const Json& assignment,
           const FlavorSpec& flavor_spec) {
  const std::string name = string_or(assignment, "name", "");
  for (const char* part : {"metadata", "spec"})
    if (!member(pod_template, part).is_object()) pod_template[part] = Json::object();
  join_placement(pod_template, {{"labels", {{kPodSetLabel, name}}},
                                {"annotations", {{kWorkloadAnnotation, name_of(workload).name}}}});
  for (const auto& [resource, flavor] : member(assignment, "flavors").items()) {
    const Json spec = flavor_spec(flavor.get<std::string>());
    join_placement(pod_template, {{"nodeSelector", member(spec, "nodeLabels")},
                                  {"tolerations", member(spec, "tolerations")}});
  }
  for (const Json& check : member(member(workload, "status"), "admissionChecks"))
    if (const Json* update = named(member(check, "podSetUpdates"), name))
      join_placement(pod_template, *update);
  if (member(assignment, "topologyAssignment").is_null()) return;
  join_list(pod_template["spec"], "schedulingGates", Json::array({{{"name", kTopologyGate}}}));
  if (topology_request(member(pod_template["metadata"], "annotations")).is_null())
    pod_template["metadata"]["annotations"][kAnyTopology] = "true";
}

// Writes a condition as Kubernetes' own helper does: lastTransitionTime changes only with the
// status.
void set_condition(Json& workload, const std::string& type, bool value, const std::string& reason,
                   const std::string& message, api::Time now) {
  Json condition = {
      {"type", type},
      {"status", value ? "True" : "False"},
      {"reason", reason},
      {"message", message},
      {"observedGeneration", integer_or(member(workload, "metadata"), "generation", 0)},
      {"lastTransitionTime", api::format_time(now)}};
  Json& conditions = workload["status"]["conditions"];
  if (!conditions.is_array()) conditions = Json::array();
  for (Json& before : conditions) {
    if (string_or(before, "type", "") != type) continue;
    const bool same = before["status"] == condition["status"];
    if (same) condition["lastTransitionTime"] = before["lastTransitionTime"];
    if (same && before["reason"] == reason && before["message"] == message) return;
    before = std::move(condition);
    return;
  }
  conditions.push_back(std::move(condition));
}

constexpr const char* kNotReady = "Not all pods are ready or succeeded";

// Gives the quota back, as Kueue's own integrations do when the last pod of an evicted Workload has
// gone.
void give_back(Json& workload, api::Time now) {
  Json& status = workload["status"];
  const Json evicted = *condition_of(workload, "Evicted");
  const std::string reason = string_or(evicted, "reason", ""),
                    message = string_or(evicted, "message", "");
  if (const Json* admitted = condition_of(workload, "Admitted"); is_admitted(workload)) {
    const auto since = api::parse_time(string_or(*admitted, "lastTransitionTime", ""));
    const int64_t before = integer_or(status, "accumulatedPastExecutionTimeSeconds", 0);
    if (since)
      status["accumulatedPastExecutionTimeSeconds"] =
          before + std::chrono::duration_cast<std::chrono::seconds>(now - *since).count();
    set_condition(workload, "Admitted", false, "NoReservation", "The workload has no reservation",
                  now);
  }
  const bool requeued = reason == "Preempted" || reason == "NodeFailures";
  set_condition(workload, "Requeued", requeued, reason, message, now);
  set_condition(workload, "QuotaReserved", false, "Pending", message, now);
  set_condition(workload, "PodsReady", false, "WaitForStart", kNotReady, now);
  status.erase("admission");
  status.erase("reclaimablePods");  // the next admission is for all replicas
}

// While a quota is reserved, Kueue does not accept a smaller number than before.
void tell_done(Json& workload, const api::TrainingJob& job, const api::JobStatus& status) {
  Json told = Json::array();
  const Json& sets = workload["spec"]["podSets"];
  const Json before = member(workload["status"], "reclaimablePods");
  for (const Json& set : sets) {
    const std::string name = string_or(set, "name", "");
    const std::optional<api::Role> role = api::role_of(name);
    if (!role || !job.replicas.contains(*role)) continue;
    const int64_t count = integer_or(set, "count", 0);
    int64_t done = std::ranges::count_if(status.records, [&](const api::ReplicaRecord& record) {
      return record.role == *role && (record.succeeded || record.failed);
    });
    if (const Json* earlier = named(before, name))
      done = std::max(done, integer_or(*earlier, "count", 0));
    if (done > 0) told.push_back({{"name", name}, {"count", std::min(done, count)}});
  }
  if (!told.empty()) workload["status"]["reclaimablePods"] = std::move(told);
}

void tell_ready(Json& workload, const api::JobStatus& status, api::Time now) {
  const bool ready = status.is_true("Running") || status.is_true("SuccessCriteriaMet");
  const Json* before = condition_of(workload, "PodsReady");
  const std::string was = before == nullptr ? "" : string_or(*before, "reason", "");
  const bool recovers = was == "WaitForRecovery" || was == "Recovered";
  if (ready) {
    set_condition(workload, "PodsReady", true, recovers ? "Recovered" : "Started",
                  "All pods reached readiness and the workload is running", now);
  } else if (recovers || was == "Started") {
    set_condition(workload, "PodsReady", false, "WaitForRecovery",
                  "At least one pod has failed, waiting for recovery", now);
  } else {
    set_condition(workload, "PodsReady", false, "WaitForStart", kNotReady, now);
  }
}

}  // namespace

Resource workloads() {
  return {kGroup, kVersion, "workloads", "Workload"};
}
Resource resource_flavors() {
  return {kGroup, kVersion, "resourceflavors", "ResourceFlavor"};
}
Resource workload_priority_classes() {
  return {kGroup, kVersion, "workloadpriorityclasses", "WorkloadPriorityClass"};
}
Resource priority_classes() {
  return {"scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass"};
}

std::optional<QueueRequest> queue_request_of(const std::map<std::string, std::string>& labels) {
  const auto label = [&](const char* name) {
    const auto found = labels.find(name);
    return found == labels.end() ? "" : found->second;
  };
  QueueRequest request{label(kQueueLabel), label(kPriorityLabel), {}};
  if (request.queue.empty()) return std::nullopt;
  const std::string text = label(kMostSecondsLabel);
  int32_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc() && end == text.data() + text.size() && seconds > 0)
    request.most_seconds = seconds;
  return request;
}

std::string workload_name(const api::TrainingJob& job) {
  return "trainingjob-" + job.name + "-" + sha256(job.uid).substr(0, kDigestLength);
}

Json workload_of(const api::TrainingJob& job, const QueueRequest& request,
                 const PodSettings& settings) {
  Json sets = Json::array();
  for (const auto& [role, spec] : job.replicas)
    if (spec.replicas > 0) sets.push_back(pod_set_of(job, role, spec, settings));
  Json metadata = belonging_metadata(job, workload_name(job));
  metadata["labels"]["kueue.x-k8s.io/job-uid"] = job.uid;
  metadata["annotations"] = {{kAskedAnnotation, asked_by(job)}};
  Json spec = {{"queueName", request.queue}, {"podSets", std::move(sets)}, {"active", true}};
  if (request.most_seconds) spec["maximumExecutionTimeSeconds"] = *request.most_seconds;
  return {{"apiVersion", workloads().api_version()},
          {"kind", workloads().kind},
          {"metadata", std::move(metadata)},
          {"spec", std::move(spec)}};
}

void set_priority(Json& workload, const WorkloadPriority& priority) {
  if (priority.reference.is_null()) return;
  workload["spec"]["priorityClassRef"] = priority.reference;
  workload["spec"]["priority"] = priority.value;
}

std::string pod_priority_class(const Json& workload) {
  for (const Json& set : member(member(workload, "spec"), "podSets")) {
    std::string name = string_or(member(member(set, "template"), "spec"), "priorityClassName", "");
    if (!name.empty()) return name;
  }
  return "";
}

bool is_reserved(const Json& workload) {
  return is_true(workload, "QuotaReserved");
}
bool is_admitted(const Json& workload) {
  return is_true(workload, "Admitted");
}
bool is_workload_finished(const Json& workload) {
  return is_true(workload, "Finished");
}

bool asks_the_same(const Json& workload, const api::TrainingJob& job, const QueueRequest& request) {
  const Json& annotations = member(member(workload, "metadata"), "annotations");
  const std::string asked = string_or(annotations, kAskedAnnotation, "");
  if (is_reserved(workload)) return asked == asked_by(job) || !asked.starts_with(kAskedVersion);
  return asked == asked_by(job) && is_placed_the_same(workload, request) &&
         (!job.elastic || has_the_same_workers(workload, job));
}

std::optional<api::Hold> hold_of(const api::TrainingJob& job, const QueueRequest& request,
                                 const Json& workload) {
  if (workload.is_null()) return api::Hold{"Queued", "the job joins queue " + request.queue};
  if (is_workload_finished(workload) || !asks_the_same(workload, job, request))
    return api::Hold{"Queued", "the job needs another Workload, and joins queue " + request.queue};
  const std::string queue = "queue " + string_or(member(workload, "spec"), "queueName", "");
  if (!is_active(workload)) {
    const std::string why = is_true(workload, "Evicted") ? message_of(workload, "Evicted") : "";
    return api::Hold{"Deactivated", "the job was taken out of " + queue +
                                        (why.empty() ? "" : ": ") + why +
                                        "; set spec.active of Workload " + workload_name(job) +
                                        " to true to let it wait again"};
  }
  if (is_reserved(workload) && is_true(workload, "Evicted")) {
    const std::string reason = string_or(*condition_of(workload, "Evicted"), "reason", "");
    return api::Hold{reason == "Preempted" ? "Preempted" : "Evicted",
                     queue + " wants the job's quota back: " + message_of(workload, "Evicted")};
  }
  if (is_admitted(workload)) return std::nullopt;
  std::string why = message_of(workload, is_reserved(workload) ? "Admitted" : "QuotaReserved");
  return api::Hold{"Queued", "the job waits in " + queue + (why.empty() ? "" : ": " + why)};
}

std::string admit(api::TrainingJob& job, const Json& workload, const FlavorSpec& flavor_spec) {
  std::string fewer;
  const Json& admission = member(member(workload, "status"), "admission");
  for (const Json& assignment : member(admission, "podSetAssignments")) {
    const std::optional<api::Role> role = api::role_of(string_or(assignment, "name", ""));
    if (!role || !job.replicas.contains(*role)) continue;
    api::ReplicaSpec& spec = job.replicas.at(*role);
    place(spec.pod_template, workload, assignment, flavor_spec);
    const int64_t count = integer_or(assignment, "count", spec.replicas);
    if (!comes_and_goes(job, *role) || count >= spec.replicas) continue;
    fewer = "its queue has admitted " + std::to_string(count) + " of " +
            std::to_string(spec.replicas) +
            " workers; suspend and resume the job to ask for all of them again";
    spec.replicas = static_cast<int>(count);
  }
  return fewer;
}

Json next_workload_status(const Json& workload, const api::TrainingJob& job,
                          const api::JobStatus& status, api::Time now) {
  Json next = workload;
  if (!member(next, "status").is_object()) next["status"] = Json::object();
  if (is_workload_finished(workload)) return next["status"];
  if (status.is_true("Finished")) {
    const api::Condition& end = *status.find(status.is_true("Succeeded") ? "Succeeded" : "Failed");
    set_condition(next, "Finished", true, end.type, end.message, now);
  } else if (is_reserved(workload) && is_true(workload, "Evicted")) {
    if (status.is_true("Suspended")) give_back(next, now);
  } else if (is_admitted(workload)) {
    tell_done(next, job, status);
    tell_ready(next, status, now);
  }
  return next["status"];
}

}  // namespace muster::kube
