#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "operator/kube/api/resource.h"
#include "operator/kube/pods/pods.h"

namespace muster::kube {

// A job in a queue of Kueue (kueue.x-k8s.io/v1beta2). The job owns a Workload, which says what the
// job's replicas need. Kueue admits the Workload to a quota, or evicts it. Muster starts and stops
// the replicas, and writes their progress into the Workload's status. All functions here are pure.

inline constexpr const char* kQueueLabel = "kueue.x-k8s.io/queue-name";  // on the TrainingJob
inline constexpr const char* kPriorityLabel = "kueue.x-k8s.io/priority-class";
inline constexpr const char* kMostSecondsLabel = "kueue.x-k8s.io/max-exec-time-seconds";
// On a Workload that is not active because the job is suspended (spec.suspend).
inline constexpr const char* kSuspendedAnnotation = "muster.dev/suspended";

Resource workloads();
Resource resource_flavors();
Resource workload_priority_classes();
Resource priority_classes();  // the priority classes of pods

// The requests to a queue in the labels of a TrainingJob.
struct QueueRequest {
  std::string queue;                    // name of the LocalQueue
  std::string priority_class;           // name of a WorkloadPriorityClass; empty: none
  std::optional<int64_t> most_seconds;  // running time after which Kueue deactivates the Workload
};
// Returns nothing for a job that names no queue.
std::optional<QueueRequest> queue_request_of(const std::map<std::string, std::string>& labels);

struct WorkloadPriority {
  Json reference;  // priorityClassRef; null: none
  int64_t value = 0;
};

// Returns the name of the job's Workload. The name is computed from the job's name and UID.
std::string workload_name(const api::TrainingJob& job);

// Returns the job's Workload, with a pod set for each role that has replicas. An elastic job may be
// admitted with fewer workers than it wants, down to minReplicas.
Json workload_of(const api::TrainingJob& job, const QueueRequest& request,
                 const PodSettings& settings);
void set_priority(Json& workload, const WorkloadPriority& priority);

// Returns the priorityClassName of the pods of a Workload, or "".
std::string pod_priority_class(const Json& workload);

bool is_reserved(const Json& workload);  // it counts against a quota
bool is_admitted(const Json& workload);
bool is_workload_finished(const Json& workload);

// Whether the Workload has the queue, the priority and the pods that the job asks for now. Once a
// quota is reserved only the pods are compared, without the number of workers of an elastic job.
bool asks_the_same(const Json& workload, const api::TrainingJob& job, const QueueRequest& request);

// Returns why the job may have no replicas now, or nothing if its Workload is admitted. `workload`:
// null if there is none.
std::optional<api::Hold> hold_of(const api::TrainingJob& job, const QueueRequest& request,
                                 const Json& workload);

// Returns the nodeLabels and tolerations of a ResourceFlavor as its `spec`.
using FlavorSpec = std::function<Json(const std::string& name)>;

// Changes the job to what was admitted, if its Workload is admitted: adds to the templates the node
// labels and tolerations of the flavors, and the settings from admission checks and topology;
// limits an elastic job to the admitted number of workers. Returns a sentence if these are fewer
// workers than the job wants, else "".
std::string admit(api::TrainingJob& job, const Json& workload, const FlavorSpec& flavor_spec);

// Returns the Workload's next status, computed from the status of its job: Finished; the quota
// given back after an eviction, once no replica lives; the ready pods; the replicas that are done,
// whose quota is free.
Json next_workload_status(const Json& workload, const api::TrainingJob& job,
                          const api::JobStatus& status, api::Time now);

}  // namespace muster::kube
