#include "operator/kube/kueue/queued_cluster.h"

#include <algorithm>
#include <utility>

#include "common/json.h"
#include "common/log.h"
#include "operator/kube/api/codec.h"
#include "operator/kube/api/metadata.h"
#include "operator/kube/pods/names.h"

namespace muster::kube {

namespace {

constexpr std::chrono::seconds kAgain{5};

// A TFJob is in a queue itself, and its TrainingJob has its labels.
bool may_queue(const api::TrainingJob& job) {
  return job.tfjob.name.empty() && job.managed_by == api::kManagedByMuster && !job.deleting;
}

bool runs(const plan::Observed& observed) {
  return std::ranges::any_of(observed.replicas, plan::is_live);
}

}  // namespace

QueuedCluster::QueuedCluster(cluster::Cluster& inner, Transport& transport,
                             const Store<WholeObject>& training_jobs, PodSettings pods,
                             bool enabled, Environment environment)
    : inner_(inner),
      pods_(std::move(pods)),
      enabled_(enabled),
      environment_(std::move(environment)),
      transport_(transport, environment_.leads),
      client_(transport_),
      training_jobs_(training_jobs),
      workloads_(kJobLabel, [this](const auto* before, const auto* after) {
        workload_changed(before, after);
      }) {}

void QueuedCluster::workload_changed(const WholeObject* before, const WholeObject* after) {
  const ObjectMeta& meta = after != nullptr ? after->meta : before->meta;
  environment_.wake(meta.name_space + "/" + meta.label(kJobLabel), now());
}

std::optional<QueueRequest> QueuedCluster::request_of(const api::TrainingJob& job) const {
  const std::optional<WholeObject> object = training_jobs_.get(key_of(job));
  if (!object || object->meta.uid != job.uid) return std::nullopt;
  return queue_request_of(object->meta.labels);
}

Json QueuedCluster::workload_of(const api::TrainingJob& job) const {
  const auto object = workloads_.get(ObjectName{job.name_space, workload_name(job)}.key());
  return object && object->meta.owner_uid == job.uid ? object->json() : Json();
}

Json QueuedCluster::flavor_spec(const std::string& name) const {
  const std::optional<WholeObject> flavor = flavors_.get("/" + name);
  if (!flavor) throw Unavailable("expected the ResourceFlavor " + name + ", found none");
  return member(flavor->json(), "spec");
}

void QueuedCluster::try_later(const api::TrainingJob& job, const std::function<void()>& action) {
  try {
    return action();
  } catch (const ApiUnavailable& error) {
    // Kueue writes the same Workload; its write wakes the job too, once it is in view.
    if (!error.status().conflict()) log::warning(error.what(), {{"job", key_of(job)}});
  } catch (const Unavailable& error) {
    log::warning(error.what(), {{"job", key_of(job)}});
  } catch (const Invalid& error) {
    log::warning(error.what(), {{"job", key_of(job)}});
  }
  environment_.wake(key_of(job), now() + kAgain);
}

std::optional<api::TrainingJob> QueuedCluster::get(const std::string& key) {
  std::optional<api::TrainingJob> job = inner_.get(key);
  if (!job) is_new(key, "");
  if (!enabled_ || !job || !may_queue(*job)) return job;
  const std::optional<QueueRequest> request = request_of(*job);
  if (request && !environment_.sees_queues())
    throw Unavailable("the Workloads and ResourceFlavors of Kueue are not in view yet");
  const Json workload = workload_of(*job);
  if (!workload.is_null()) {
    if (request)
      try_later(*job, [&] { tell(*job, job->status, workload); });
    else if (!is_workload_finished(workload))
      try_later(*job, [&] { remove(workload); });
  }
  if (request && !job->status.is_true("Finished")) follow(*job, *request, workload);
  return job;
}

// Makes the job what its queue lets it be.
void QueuedCluster::follow(api::TrainingJob& job, const QueueRequest& request, Json workload) {
  if (!workload.is_null()) {
    try_later(job, [&] { follow_suspend(job, workload); });
    workload = workload_of(job);
  }
  job.hold = hold_of(job, request, workload);
  if (job.hold || job.suspend) return;
  const auto spec_of = [this](const std::string& name) { return flavor_spec(name); };
  const std::string fewer = admit(job, workload, spec_of);
  if (is_new(key_of(job), fewer) && !fewer.empty())
    inner_.emit(job, {plan::Event::Kind::normal, "AdmittedFewer", fewer});
}

plan::Observed QueuedCluster::observe(const api::TrainingJob& job) {
  plan::Observed observed = inner_.observe(job);
  if (job.hold && !job.suspend && !runs(observed)) try_later(job, [&] { join(job, observed); });
  return observed;
}

// Brings the Workload of a job without replicas to what the job is now. One that is reserved or has
// finished cannot be changed, so it goes, and the pass that sees it gone makes another.
void QueuedCluster::join(const api::TrainingJob& job, const plan::Observed& observed) {
  if (observed.name_conflict || observed.invalid_template) return;
  const std::optional<QueueRequest> request = request_of(job);
  if (!request) return;
  const Json before = workload_of(job);
  const bool stale =
      before.is_null() || is_workload_finished(before) || !asks_the_same(before, job, *request);
  if (!stale) return;
  if (!before.is_null() && (is_workload_finished(before) || is_reserved(before)))
    return remove(before);
  Json workload = kube::workload_of(job, *request, pods_, {});
  const WorkloadPriority priority = priority_of(*request, workload);
  workload = kube::workload_of(job, *request, pods_, priority);
  if (before.is_null()) {
    workloads_.refresh(
        decode_object<WholeObject>(client_.create(kube::workloads(), workload).text));
    return;
  }
  Json changed = before;
  changed["metadata"]["annotations"].update(workload["metadata"]["annotations"]);
  workload["spec"]["active"] = bool_or(before["spec"], "active", true);
  changed["spec"] = workload["spec"];
  update(changed, "");
}

WorkloadPriority QueuedCluster::priority_of(const QueueRequest& request,
                                            const Json& workload) const {
  const bool of_queue = !request.priority_class.empty();
  const std::string name = of_queue ? request.priority_class : pod_priority_class(workload);
  if (name.empty()) return {};
  const Resource resource = of_queue ? workload_priority_classes() : priority_classes();
  const std::optional<Json> found = client_.get(resource, {"", name});
  if (!found)
    throw Unavailable("expected the " + resource.kind + " " + name +
                      " that the job names, found none");
  return {{{"group", resource.group}, {"kind", resource.kind}, {"name", name}},
          integer_or(*found, "value", 0)};
}

// Kueue takes the quota of a Workload that is not active. One that somebody else has deactivated
// stays so.
void QueuedCluster::follow_suspend(const api::TrainingJob& job, Json workload) {
  const bool active = bool_or(workload["spec"], "active", true);
  const bool by_suspend =
      member(member(workload, "metadata"), "annotations").contains(kSuspendedAnnotation);
  if (is_workload_finished(workload)) return;
  if (job.suspend && active) {
    workload["metadata"]["annotations"][kSuspendedAnnotation] = "true";
    workload["spec"]["active"] = false;
  } else if (!job.suspend && !active && by_suspend) {
    workload["metadata"]["annotations"].erase(kSuspendedAnnotation);
    workload["spec"]["active"] = true;
  } else {
    return;
  }
  update(workload, "");
}

void QueuedCluster::tell(const api::TrainingJob& job, const api::JobStatus& status, Json workload) {
  Json next = next_workload_status(workload, job, status, now());
  if (next == member(workload, "status")) return;
  const bool had_quota = is_reserved(workload);
  workload["status"] = std::move(next);
  update(workload, "status");
  if (had_quota && !is_reserved(workload)) environment_.wake(key_of(job), now());
}

bool QueuedCluster::publish_status(const api::TrainingJob& job, const api::JobStatus& status) {
  if (!inner_.publish_status(job, status)) return false;
  if (!enabled_ || !may_queue(job)) return true;
  if (const Json workload = workload_of(job); !workload.is_null())
    try_later(job, [&] { tell(job, status, workload); });
  return true;
}

// The body has the resourceVersion of what was read, so that no change of Kueue's is lost.
void QueuedCluster::update(const Json& workload, const char* subresource) {
  WriteOptions options;
  options.subresource = subresource;
  workloads_.refresh(
      decode_object<WholeObject>(client_.update(kube::workloads(), workload, options).text));
}

void QueuedCluster::remove(const Json& workload) {
  Client::RemoveOptions options;
  options.preconditions.uid = uid_of(workload);
  client_.remove(kube::workloads(), name_of(workload), options);
}

// Returns whether this is another text than the last one.
bool QueuedCluster::is_new(const std::string& key, const std::string& fewer) {
  const MutexLock lock(mutex_);
  if (fewer.empty()) return fewer_.erase(key) > 0;
  return std::exchange(fewer_[key], fewer) != fewer;
}

}  // namespace muster::kube
