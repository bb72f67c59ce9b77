#pragma once

#include <optional>

#include "operator/kube/api/objects.h"
#include "operator/plan/values.h"

namespace muster::kube {

// What the plan sees of a pod. Pure. Only the container that counts (names.h) decides how the
// replica ended: sidecars and init containers never do, but that a pod whose init container keeps
// failing gets nowhere.
//
// Reasons: OOMKilled; Evicted (by the kubelet, the eviction API, a taint, a node that shuts down);
// Preempted; NodeLost; CrashLoopBackOff; InitContainerFailed; ImagePullBackOff, Unschedulable and
// the like of a pod that does not come up; else what Kubernetes says.
//
// `node_lost`: the pod's node does not answer, so that nobody will report its end. The replica is
// then taken for ended, whatever its status says.
//
// Nothing for a pod without our labels.
std::optional<plan::ObservedReplica> observe(const Pod& pod, bool node_lost = false);

// Where the job ended by the last words of a replica that has succeeded (api/progress.h); null if
// it says nothing of that.
Json final_progress(const Pod& pod);

// The results for status.results: those in the termination message of a leader that has succeeded,
// and the evaluation of the same weights in that of the evaluator, with any exit code. Null if the
// leader's has none.
Json final_results(const api::TrainingJob& job, const std::vector<Pod>& pods);

// Whether it takes a look at the node to tell if the pod has been lost with it: asked to leave,
// it lives on by its status, and either it was to leave because of its node, or its node controller
// has called it not ready while its containers never said so.
bool is_suspect(const Pod& pod);

// The same pod shows both: as near to certainty as its status alone can tell.
bool seems_lost(const Pod& pod);

// Whether a node's kubelet does not answer: its Ready condition is Unknown, or it carries the taint
// of an unreachable node.
bool is_unreachable(const Json& node);

// The replica has ended, but containers beside it go on in the pod: they would for ever.
bool outlives_replica(const Pod& pod);

// The kubelet has said that the container that counts is ready, and nothing else since.
bool was_ready(const Pod& pod);

// How often the kubelet has restarted the container that counts.
int restarts_of_container(const Pod& pod);

bool has_ended(const Pod& pod);   // all its containers
bool is_tracked(const Pod& pod);  // has the finalizer muster.dev/tracking
bool is_current(const Pod& pod);  // is in the Service

}  // namespace muster::kube
