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
// then treated as ended, whatever the pod's status says.
//
// Returns nothing for a pod without Muster's labels, or with impossibly large numbers in them.
std::optional<plan::ObservedReplica> observe(const Pod& pod, bool node_lost = false);

// Returns the job's last progress as a replica that has succeeded reports it in its termination
// message, with all its fields; null if there is none.
Json final_progress(const Pod& pod);

// Returns the results for status.results: those in the termination message of a leader that has
// succeeded, and the evaluation of the same weights in the evaluator's message, with any exit code.
// Null if the leader's message has none.
Json final_results(const api::TrainingJob& job, const std::vector<Pod>& pods);

// Whether the pod may be lost with its node, so that the node must be looked at: the pod was asked
// to leave but still lives by its status, and either it was asked because of its node, or the node
// controller has marked it not ready while its containers were last reported ready.
bool is_suspect(const Pod& pod);

// Whether both signs of is_suspect() hold. The pod's status alone cannot be more certain.
bool seems_lost(const Pod& pod);

// Whether a node's kubelet does not answer: its Ready condition is Unknown, or it carries the taint
// of an unreachable node.
bool is_unreachable(const Json& node);

// Whether the replica has ended but other containers of the pod still run, which would never end by
// themselves.
bool outlives_replica(const Pod& pod);

// Whether the kubelet's last report says that the container that counts is ready.
bool was_ready(const Pod& pod);

// Returns how often the kubelet has restarted the container that counts.
int restarts_of_container(const Pod& pod);

bool has_ended(const Pod& pod);   // all its containers have ended
bool is_tracked(const Pod& pod);  // has the finalizer muster.dev/tracking
bool is_current(const Pod& pod);  // is in the Service

}  // namespace muster::kube
