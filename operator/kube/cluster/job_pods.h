#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "operator/kube/cluster/name_conflicts.h"
#include "operator/kube/cluster/own_writes.h"
#include "operator/kube/cluster/pod_writer.h"
#include "operator/kube/cluster/template_checks.h"
#include "operator/kube/pods/pods.h"
#include "operator/plan/values.h"

namespace muster::kube {

// Knows the pods of each job, and creates, removes and releases several at a time. Every function
// that writes throws Unavailable if the write does not succeed now. Thread-safe.
class JobPods {
 public:
  using Now = std::function<Time()>;
  // `at_a_time` is the number of a job's pods that are written at once. All references must outlive
  // it.
  JobPods(const Client& client, Store<Pod>& store, NameConflicts& conflicts, PodSettings settings,
          size_t at_a_time, Now now);

  // Returns the pods in view, completed with our own writes to them.
  std::vector<Pod> of(const api::TrainingJob& job);
  // Whether this change of the view contains more than our own writes.
  bool is_news(const Pod* before, const Pod* after) { return own_writes_.is_news(before, after); }
  // Checks whether the job's pods can be created (template_checks.h). `whole` is the job as the API
  // server has it.
  Acceptance check(const api::TrainingJob& job, const Json& whole);
  // Whether the last check or creation failed to show that the job's pods can be created.
  bool has_trouble(const std::string& job_uid) { return checks_.has_trouble(job_uid); }
  void forget(const std::string& job_uid) { checks_.forget(job_uid); }

  // Creates a pod for each replica, and takes the replaced pods out of the Service. Begins no
  // further creation once `wanted` returns false. If a name is still held, creates the others and
  // then throws NameIsHeld (tfjob_pods.h).
  void create(const api::TrainingJob& job, std::span<const plan::CreateReplica> replicas,
              const std::function<bool()>& wanted);
  void remove(const api::TrainingJob& job, std::span<const plan::RemoveReplica> replicas);

  // Passes a request for a checkpoint on to the pod of the job's leader, unless the pod already has
  // it.
  void hand_on_request(const api::TrainingJob& job, const std::vector<Pod>& pods);

  // Releases a pod: removes its tracking finalizer.
  void let_go(const Pod& pod) { writer_.untrack(pod); }
  // Releases those of `pods` that have ended and are counted in `status`. Stops containers that
  // still run after the replica's end, because they would never end by themselves.
  void let_go_counted(const api::TrainingJob& job, const api::JobStatus& status,
                      const std::vector<Pod>& pods);
  // Releases the pods of deleted jobs of this name, because nobody counts the ends of these pods
  // any more. `live_uid` is the UID of the job of this name that is in view, or "".
  void let_go_orphans(const std::string& name_space, const std::string& name,
                      const std::string& live_uid);

 private:
  void give_way(const api::TrainingJob& job, const Pod& pod);
  void create_pod(const api::TrainingJob& job, const Json& pod);

  const Client& client_;
  Store<Pod>& store_;
  NameConflicts& conflicts_;
  const PodSettings settings_;
  const size_t at_a_time_;
  const Now now_;
  TemplateChecks checks_;
  OwnWrites own_writes_;
  PodWriter writer_;
};

}  // namespace muster::kube
