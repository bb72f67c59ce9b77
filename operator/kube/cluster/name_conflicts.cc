#include "operator/kube/cluster/name_conflicts.h"

#include "operator/kube/api/metadata.h"
#include "operator/kube/pods/names.h"
#include "operator/kube/pods/tfjob_pods.h"

namespace muster::kube {

bool is_of(const api::TrainingJob& job, const Resource& resource, const Json& object) {
  const std::string owner = owner_uid_of(object);
  return owner == job.uid ||
         (is_tfjob(job) && resource.kind == services().kind && owner == job.tfjob.uid);
}

void NameConflicts::report(const api::TrainingJob& job, const Resource& resource,
                           const ObjectName& name, const std::string& found) {
  {
    const MutexLock lock(mutex_);
    conflicts_[job.uid] = {resource, name};
  }
  throw Unavailable("a name of job " + key_of(job) + " is taken: " + found);
}

std::optional<std::string> NameConflicts::look(const api::TrainingJob& job) {
  std::optional<Conflict> conflict;
  {
    const MutexLock lock(mutex_);
    const auto found = conflicts_.find(job.uid);
    if (found != conflicts_.end()) conflict = found->second;
  }
  if (!conflict) return std::nullopt;
  const auto there = client_.get(conflict->resource, conflict->name);
  if (there && !is_of(job, conflict->resource, *there)) return describe_owner(*there);
  forget(job.uid);
  return std::nullopt;
}

void NameConflicts::forget(const std::string& job_uid) {
  const MutexLock lock(mutex_);
  conflicts_.erase(job_uid);
}

}  // namespace muster::kube
