#include "operator/kube/kueue/queued_cluster.h"

#include <algorithm>
#include <utility>

#include "common/documents/json.h"
#include "common/program/log.h"
#include "operator/kube/api/codec.h"
#include "operator/kube/api/metadata.h"
#include "operator/kube/pods/names.h"
#include "operator/plan/retry.h"

namespace muster::kube {

namespace {

constexpr std::chrono::seconds kAgain{5};

// Kueue queues a TFJob itself, and its TrainingJob has the same labels.
bool may_queue(const api::TrainingJob& job) {
  return job.tfjob.name.empty() && job.managed_by == api::kManagedByMuster && !job.deleting;
}

Json reference_to(const Resource& resource, const std::string& name) {
  return {{"group", resource.group}, {"kind", resource.kind}, {"name", name}};
}

// Whether the write failed because the view is late: Kueue has changed the Workload, or this
// process has created it.
bool is_late(const ApiUnavailable& error) {
  return error.status().conflict() || error.status().already_exists();
}

bool runs(const plan::Observed& observed) {
  return std::ranges::any_of(observed.replicas, plan::is_live);
}

}  // namespace

QueuedCluster::QueuedCluster(cluster::Cluster& inner, Transport& transport,
                             const Store<WholeObject>& training_jobs, PodSettings pods,
                             bool enabled, Environment environment,
                             std::function<bool()> sees_queues)
    : ForwardingCluster(inner),
      pods_(std::move(pods)),
      enabled_(enabled),
      environment_(std::move(environment)),
      sees_queues_(std::move(sees_queues)),
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

std::optional<WholeObject> QueuedCluster::object_of(const api::TrainingJob& job) const {
  std::optional<WholeObject> object = training_jobs_.get(key_of(job));
  if (object && object->meta.uid != job.uid) object.reset();
  return object;
}

std::optional<QueueRequest> QueuedCluster::request_of(const api::TrainingJob& job) const {
  const std::optional<WholeObject> object = object_of(job);
  return object ? queue_request_of(object->meta.labels) : std::nullopt;
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
    if (!is_late(error)) log::warning(key_of(job) + ": " + error.what(), {{"job", key_of(job)}});
  } catch (const Unavailable& error) {
    log::warning(key_of(job) + ": " + error.what(), {{"job", key_of(job)}});
  } catch (const Invalid& error) {
    log::warning(key_of(job) + ": " + error.what(), {{"job", key_of(job)}});
  }
  environment_.wake(key_of(job), now() + kAgain);
}

std::optional<api::TrainingJob> QueuedCluster::get(const std::string& key) {
  std::optional<api::TrainingJob> job = inner().get(key);
  if (!job) forget(key);
  if (!enabled_ || !job || !may_queue(*job)) return job;
  const std::optional<QueueRequest> request = request_of(*job);
  if (request && !sees_queues_()) {
    tell_of_missing_queues(*job);
    throw Unavailable("the Workloads and ResourceFlavors of Kueue are not in view yet");
  }
  const Json workload = current_workload_of(*job);
  if (!workload.is_null()) {
    if (request)
      try_later(*job, [&] { tell(*job, job->status, workload); });
    else if (!is_workload_finished(workload))
      try_later(*job, [&] { remove(workload); });
  }
  if (request && !plan::stays_finished(*job)) follow(*job, *request, workload);
  return job;
}

// Kueue's objects come into view soon after the operator's start. Until some time has passed, this
// function reports nothing.
void QueuedCluster::tell_of_missing_queues(const api::TrainingJob& job) {
  constexpr std::chrono::seconds kSoon{20};
  {
    const MutexLock lock(mutex_);
    Said& said = said_[key_of(job)];
    if (!said.missed_since) said.missed_since = now();
    if (now() - *said.missed_since < kSoon || std::exchange(said.told_of_missing, true)) return;
  }
  inner().emit(job, {plan::Event::Kind::warning, "QueuesNotInView",
                     "the job names a queue, and the operator cannot see Kueue's Workloads and "
                     "ResourceFlavors: are Kueue's CustomResourceDefinitions installed?"});
}

// The view of Workloads may be older than the view of jobs: an old Workload must not stop a running
// job.
Json QueuedCluster::current_workload_of(const api::TrainingJob& job) const {
  Json seen = workload_of(job);
  const api::Condition* suspended = job.status.find("Suspended");
  const bool was_let_run = suspended != nullptr && suspended->reason == "Admitted";
  if (!was_let_run || is_reserved(seen) || job.status.is_true("Finished")) return seen;
  const auto there = client_.get(kube::workloads(), {job.name_space, workload_name(job)});
  return there && owner_uid_of(*there) == job.uid ? *there : Json();
}

// Changes the job to what its queue allows.
void QueuedCluster::follow(api::TrainingJob& job, const QueueRequest& request, Json workload) {
  if (!workload.is_null()) {
    try_later(job, [&] {
      if (follow_suspend(job, workload)) workload = workload_of(job);
    });
  }
  job.hold = hold_of(job, request, workload);
  if (job.hold) job.hold->message += trouble_of(key_of(job));
  const auto spec_of = [this](const std::string& name) { return flavor_spec(name); };
  const std::string fewer = admit(job, workload, spec_of);
  if (!job.hold && !job.suspend && is_new(key_of(job), fewer))
    inner().emit(job, {plan::Event::Kind::normal, "AdmittedFewer", fewer});
}

plan::Observed QueuedCluster::observe(const api::TrainingJob& job) {
  plan::Observed observed = inner().observe(job);
  const bool stands = job.status.is_true("Suspended") && !runs(observed);
  if (job.hold && !job.suspend && stands) try_later(job, [&] { join(job, observed); });
  return observed;
}

// Updates the Workload of a job that has no replicas, also by its status, to the present job. A
// Workload that is reserved or has finished cannot be changed; it is deleted, and the pass that
// sees the deletion creates another. The job is taken as its user has written it, because `job`
// contains the additions of admit().
void QueuedCluster::join(const api::TrainingJob& job, const plan::Observed& observed) {
  if (observed.name_conflict || observed.invalid_template) return;
  const std::optional<WholeObject> object = object_of(job);
  if (!object) return;
  try {
    join_queue(api::to_training_job(object->json()));
    set_trouble(key_of(job), "");
  } catch (const ApiUnavailable& error) {
    if (!is_late(error)) set_trouble(key_of(job), error.what());
    throw;
  } catch (const std::exception& error) {
    set_trouble(key_of(job), error.what());
    throw;
  }
}

void QueuedCluster::join_queue(const api::TrainingJob& job) {
  const std::optional<QueueRequest> request = request_of(job);
  if (!request) return;
  const Json before = workload_of(job);
  const bool stale =
      before.is_null() || is_workload_finished(before) || !asks_the_same(before, job, *request);
  if (!stale) return;
  if (!before.is_null() && (is_workload_finished(before) || is_reserved(before)))
    return remove(before);
  Json workload = kube::workload_of(job, *request, pods_);
  set_priority(workload, priority_of(*request, workload));
  if (before.is_null()) {
    client_.create(kube::workloads(), workload);
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
  if (name.empty()) return default_priority();
  const Resource resource = of_queue ? workload_priority_classes() : priority_classes();
  const std::optional<Json> found = client_.get(resource, {"", name});
  if (!found)
    throw Unavailable("expected the " + resource.kind + " " + name +
                      " that the job names, found none");
  return {reference_to(resource, name), integer_or(*found, "value", 0)};
}

// Returns the priority of pods that name no priority class.
WorkloadPriority QueuedCluster::default_priority() const {
  for (const Json& one : client_.list(priority_classes(), "", {}))
    if (bool_or(one, "globalDefault", false))
      return {reference_to(priority_classes(), name_of(one).name), integer_or(one, "value", 0)};
  return {};
}

// Sets whether the Workload is active: Kueue takes the quota away from an inactive Workload. A
// Workload that somebody else has deactivated stays inactive. Returns whether the function has
// changed the Workload.
bool QueuedCluster::follow_suspend(const api::TrainingJob& job, Json workload) {
  const bool active = bool_or(workload["spec"], "active", true);
  const bool by_suspend =
      member(member(workload, "metadata"), "annotations").contains(kSuspendedAnnotation);
  if (is_workload_finished(workload)) return false;
  if (job.suspend && active) {
    workload["metadata"]["annotations"][kSuspendedAnnotation] = "true";
    workload["spec"]["active"] = false;
  } else if (!job.suspend && !active && by_suspend) {
    workload["metadata"]["annotations"].erase(kSuspendedAnnotation);
    workload["spec"]["active"] = true;
  } else {
    return false;
  }
  update(workload, "");
  return true;
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
  if (!inner().publish_status(job, status)) return false;
  if (!enabled_ || !may_queue(job)) return true;
  if (const Json workload = workload_of(job); !workload.is_null())
    try_later(job, [&] { tell(job, status, workload); });
  if (status.is_true("Suspended") && !job.status.is_true("Suspended"))
    environment_.wake(key_of(job), now());
  return true;
}

// The body has the resourceVersion of the Workload that was read, so that no change by Kueue is
// lost.
void QueuedCluster::update(const Json& workload, const char* subresource) {
  WriteOptions options;
  options.subresource = subresource;
  workloads_.refresh(
      decode_object<WholeObject>(client_.update(kube::workloads(), workload, options).text));
}

void QueuedCluster::remove(const Json& workload) {
  Client::RemoveOptions options;
  options.preconditions = {uid_of(workload),
                           string_or(workload["metadata"], "resourceVersion", "")};
  client_.remove(kube::workloads(), name_of(workload), options);
}

// Returns whether `fewer` is not empty and differs from the job's last sentence.
bool QueuedCluster::is_new(const std::string& key, const std::string& fewer) {
  const MutexLock lock(mutex_);
  return std::exchange(said_[key].fewer, fewer) != fewer && !fewer.empty();
}

void QueuedCluster::set_trouble(const std::string& key, const std::string& trouble) {
  const MutexLock lock(mutex_);
  said_[key].trouble = trouble;
}

std::string QueuedCluster::trouble_of(const std::string& key) const {
  const MutexLock lock(mutex_);
  const auto found = said_.find(key);
  return found == said_.end() || found->second.trouble.empty() ? "" : ": " + found->second.trouble;
}

void QueuedCluster::forget(const std::string& key) {
  const MutexLock lock(mutex_);
  said_.erase(key);
}

}  // namespace muster::kube
