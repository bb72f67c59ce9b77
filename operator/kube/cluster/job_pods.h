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

// The pods of jobs: which there are, and what is done to them, several of a job at a time. All that
// writes throws Unavailable where it does not succeed now. Thread-safe.
class JobPods {
 public:
  using Now = std::function<Time()>;
  // `at_a_time`: pods of a job that are created, removed or let go. All references must outlive it.
  JobPods(const Client& client, Store<Pod>& store, NameConflicts& conflicts, PodSettings settings,
          size_t at_a_time, Now now);

  // In view, with what we know of them by our own writes.
  std::vector<Pod> of(const api::TrainingJob& job);
  // A change of the view. False: there is nothing in it that our own writes did not tell.
  bool is_news(const Pod* before, const Pod* after) { return own_writes_.is_news(before, after); }
  // Whether the job's pods can be created (template_checks.h). `whole` is the job as the API server
  // has it.
  Acceptance check(const api::TrainingJob& job, const Json& whole);
  // What is known of a job is not that its pods can be created.
  bool has_trouble(const std::string& job_uid) { return checks_.has_trouble(job_uid); }
  void forget(const std::string& job_uid) { checks_.forget(job_uid); }

  // Begins no more of them once `wanted` says no. Takes those whose place they take out of the
  // Service.
  void create(const api::TrainingJob& job, std::span<const plan::CreateReplica> replicas,
              const std::function<bool()>& wanted);
  void remove(const api::TrainingJob& job, std::span<const plan::RemoveReplica> replicas);

  // To let a pod go is to take the tracking finalizer off it.
  void let_go(const Pod& pod) { writer_.untrack(pod); }
  // Those of `pods` that have ended and are counted in `status`; stops what goes on beside them,
  // for it would for ever.
  void let_go_counted(const api::TrainingJob& job, const api::JobStatus& status,
                      const std::vector<Pod>& pods);
  // Pods of jobs of this name that are gone: nobody counts their ends any more. `live_uid`: of the
  // job of this name that is in view, or "".
  void let_go_orphans(const std::string& name_space, const std::string& name,
                      const std::string& live_uid);

 private:
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
