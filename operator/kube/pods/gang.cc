#include "operator/kube/pods/gang.h"

#include "common/documents/json.h"
#include "operator/kube/pods/names.h"
#include "operator/kube/pods/pods.h"

namespace muster::kube {

namespace {

bool has_gang(const api::TrainingJob& job, const char* name) {
  return string_or(job.scheduling_policy, "gang", "none") == name;
}
bool is_volcano(const api::TrainingJob& job) {
  return has_gang(job, "volcano");
}
bool is_scheduler_plugins(const api::TrainingJob& job) {
  return has_gang(job, "scheduler-plugins");
}

// Copies policy[from] to object[to], if it is given.
void copy(const Json& policy, const char* from, Json& object, const char* to) {
  if (const Json& value = member(policy, from); !value.is_null()) object[to] = value;
}

// Returns how many replicas are worth placing: for an elastic job the smallest group that can
// train.
int least_together(const api::TrainingJob& job) {
  if (!job.elastic) return api::replicas_of(job);
  return api::most_replicas(job, api::Role::chief) + job.elastic->min_replicas;
}

}  // namespace

Json gang_labels(const api::TrainingJob& job) {
  return is_scheduler_plugins(job) ? Json{{kGroupLabel, job.name}} : Json::object();
}

Json gang_annotations(const api::TrainingJob& job) {
  return is_volcano(job) ? Json{{kGroupAnnotation, job.name}} : Json::object();
}

Json gang_pod_spec(const api::TrainingJob& job) {
  Json spec = Json::object();
  if (is_volcano(job)) spec["schedulerName"] = "volcano";
  if (is_scheduler_plugins(job)) spec["schedulerName"] = "scheduler-plugins-scheduler";
  copy(job.scheduling_policy, "priorityClass", spec, "priorityClassName");
  return spec;
}

Json pod_group_of(const api::TrainingJob& job) {
  if (!is_volcano(job) && !is_scheduler_plugins(job)) return nullptr;
  const Json& policy = job.scheduling_policy;
  Json spec = {{"minMember", integer_or(policy, "minAvailable", least_together(job))}};
  if (is_volcano(job)) {
    copy(policy, "queue", spec, "queue");
    copy(policy, "priorityClass", spec, "priorityClassName");
  } else {
    copy(policy, "timeout", spec, "scheduleTimeoutSeconds");
  }
  return {{"apiVersion",
           is_volcano(job) ? "scheduling.volcano.sh/v1beta1" : "scheduling.x-k8s.io/v1alpha1"},
          {"kind", "PodGroup"},
          {"metadata", belonging_metadata(job, job.name)},
          {"spec", std::move(spec)}};
}

}  // namespace muster::kube
