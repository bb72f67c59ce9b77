#pragma once

#include <optional>

#include "operator/kube/api/objects.h"
#include "operator/plan/values.h"

namespace muster::kube {

// Returns a pod as the plan sees it. Pure. Only the container that counts (names.h) decides how the
// replica ended; sidecars and init containers never do, except that a pod with an init container
// that keeps failing does not start.
//
// Reasons: OOMKilled; Evicted (by the kubelet, the eviction API, a taint, a node that shuts down);
// Preempted; NodeLost; CrashLoopBackOff; InitContainerFailed; ImagePullBackOff, Unschedulable and
// similar ones of a pod that does not start; else the reason that Kubernetes gives.
//
// `node_lost`: the pod's node does not answer, so that nobody will report its end. The replica is
// then treated as ended, whatever its status says.
//
// Returns nothing for a pod without our labels, or with numbers in them that nobody gets to.
std::optional<plan::ObservedReplica> observe(const Pod& pod, bool node_lost = false);

// Returns the job's last progress as a replica that has succeeded reports it in its termination
// message (api/progress.h); null if there is none.
Json final_progress(const Pod& pod);

// Returns the results for status.results: those in the termination message of a leader that has
// succeeded, and the evaluation of the same weights in the evaluator's message, with any exit code.
// Null if the leader's message has none.
Json final_results(const api::TrainingJob& job, const std::vector<Pod>& pods);

// Whether one must look at the node to tell if the pod has been lost with it: the pod was asked to
// leave but lives on by its status, and either it was to leave because of its node, or its node
// controller has called it not ready while its containers never said so.
bool is_suspect(const Pod& pod);

// Whether both signs of is_suspect() hold: this is as certain as the pod's status alone can be.
bool seems_lost(const Pod& pod);

// Whether a node's kubelet does not answer: its Ready condition is Unknown, or it carries the taint
// of an unreachable node.
bool is_unreachable(const Json& node);

// Whether the replica has ended, but other containers of the pod continue: they would never end.
bool outlives_replica(const Pod& pod);

// Whether the kubelet's last report says that the container that counts is ready.
bool was_ready(const Pod& pod);

// Returns how often the kubelet has restarted the container that counts.
int restarts_of_container(const Pod& pod);

bool has_ended(const Pod& pod);   // all its containers
bool is_tracked(const Pod& pod);  // has the finalizer muster.dev/tracking
bool is_current(const Pod& pod);  // is in the Service

}  // namespace muster::kube
