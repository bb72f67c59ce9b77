#include <algorithm>
#include <set>
#include <string_view>

#include "common/json.h"
#include "operator/api/progress.h"
#include "operator/api/status.h"
#include "operator/kube/api/codec.h"
#include "operator/kube/cluster/kube_cluster.h"
#include "operator/kube/cluster/parallel.h"
#include "operator/kube/pods/names.h"
#include "operator/kube/pods/observe.h"

// What KubeCluster writes; kube_cluster.cc has what it looks at.

namespace muster::kube {

namespace {

// How old what is known of a PodGroup may be where pods are created: we are not told when it goes.
constexpr std::chrono::seconds kGroupTrusted{10};
constexpr std::chrono::seconds kFirstLook{2};  // at pods that were created

ObjectName name_of(const Json& object) {
  const Json& metadata = member(object, "metadata");
  return {string_or(metadata, "namespace", ""), string_or(metadata, "name", "")};
}

Resource pod_groups(const Json& group) {
  const std::string version = string_or(group, "apiVersion", "");
  const size_t slash = version.find('/');
  return {version.substr(0, slash), version.substr(slash + 1), "podgroups", "PodGroup"};
}

// The owner is a job of this name that is no more: the garbage collector will take the object away.
bool is_left_by_predecessor(const Json& object, const api::TrainingJob& job) {
  for (const Json& owner : member(member(object, "metadata"), "ownerReferences")) {
    if (string_or(owner, "kind", "") == training_jobs().kind &&
        string_or(owner, "name", "") == job.name && string_or(owner, "uid", "") != job.uid) {
      return true;
    }
  }
  return false;
}

int restarts_of(const api::JobStatus& status, api::Role role) {
  const auto found = status.replica_statuses.find(role);
  return found == status.replica_statuses.end() ? 0 : found->second.restarts;
}

// Those in the Service that one of `replicas` takes the place of, by its number among these.
std::multimap<size_t, const Pod*> superseded(const std::vector<Pod>& pods,
                                             std::span<const plan::CreateReplica> replicas) {
  std::map<std::pair<api::Role, int>, size_t> places;
  for (size_t i = 0; i < replicas.size(); ++i) places[{replicas[i].role, replicas[i].index}] = i;
  std::multimap<size_t, const Pod*> result;
  for (const Pod& pod : pods) {
    const auto other = kube::observe(pod);
    if (!other || has_ended(pod) || !is_current(pod)) continue;
    const auto place = places.find({other->role, other->index});
    if (place == places.end() || other->attempt >= replicas[place->second].attempt) continue;
    result.emplace(place->second, &pod);
  }
  return result;
}

}  // namespace

bool KubeCluster::publish_status(const api::TrainingJob& job, const api::JobStatus& status) {
  const bool starts = is_start(job, status);
  if (starts || is_report(job.status, status)) {
    const api::Time at = now();
    const api::Time turn = (starts ? starts_ : reports_).turn(job.uid, at);
    if (turn > at) {
      environment_.wake(key_of(job), turn);
      return false;
    }
  }
  write_status(job, status);
  starts_.forget(job.uid);
  reports_.wrote(job.uid, now());
  count(job, status);
  try {
    let_go_counted(job, status, pods_of(job));
  } catch (const Unavailable&) {
    // What is written must be told and done. The pass that follows lets go, or says why it cannot.
    environment_.wake(key_of(job), now());
  }
  return true;
}

void KubeCluster::write_status(const api::TrainingJob& job, const api::JobStatus& status) {
  const Resource resource = training_jobs();
  Json value = api::to_json(status);
  value["labelSelector"] = label_selector(job, api::Role::worker);
  const std::optional<WholeObject> before = jobs_.get(key_of(job));
  value["writes"] = before ? integer_or(member(before->json(), "status"), "writes", 0) + 1 : 1;
  const Json body = {{"apiVersion", resource.api_version()},
                     {"kind", resource.kind},
                     {"metadata",
                      {{"name", job.name},
                       {"namespace", job.name_space},
                       {"uid", job.uid},
                       {"resourceVersion", job.resource_version}}},
                     {"status", std::move(value)}};
  WriteOptions options;
  options.subresource = "status";
  jobs_.refresh(decode_object<WholeObject>(client_.update(resource, body, options).text));
  note_state(job.uid, status);
}

// For those who look on: what this status has that the one before had not.
void KubeCluster::count(const api::TrainingJob& job, const api::JobStatus& status) {
  // The step alone may be another job's, from whose checkpoint this one goes on.
  const bool first_step =
      api::steps_taken(job.status.progress) == 0 && integer_or(status.progress, "stepsHere", 0) > 0;
  if (first_step) {
    emit(job, {plan::Event::Kind::normal, "FirstStep", "the first training step is done"});
  }
  if (environment_.watcher == nullptr) return;
  const api::Condition* restarting = status.find("Restarting");
  for (const api::Role role : api::kRoles) {
    const int times = restarts_of(status, role) - restarts_of(job.status, role);
    const std::string reason =
        restarting != nullptr && restarting->status ? restarting->reason : "ReplicaFailed";
    if (times > 0) environment_.watcher->restarted(role, reason, times);
  }
  if (!first_step) return;
  const std::optional<WholeObject> object = jobs_.get(key_of(job));
  if (object && object->meta.created) {
    environment_.watcher->took_first_step(now() - *object->meta.created);
  }
}

// What has ended and is counted may go; and what goes on beside it is stopped, for it would for
// ever.
void KubeCluster::let_go_counted(const api::TrainingJob& job, const api::JobStatus& status,
                                 const std::vector<Pod>& pods) {
  const bool clean = job.run_policy.clean_pod_policy != api::CleanPodPolicy::none;
  const auto lives_on = [&](const Pod& pod) { return clean && outlives_replica(pod); };
  const std::set<std::string_view> counted(status.counted_uids.begin(), status.counted_uids.end());
  std::vector<const Pod*> done;
  for (const Pod& pod : pods) {
    if (!counted.contains(pod.meta.uid)) continue;
    if (lives_on(pod) || is_tracked(pod)) done.push_back(&pod);
  }
  in_parallel(done.size(), settings_.pods_at_a_time, [&](size_t i) {
    if (lives_on(*done[i])) writer_.remove(*done[i]);
    writer_.untrack(*done[i]);
  });
}

void KubeCluster::create(const api::TrainingJob& job,
                         std::span<const plan::CreateReplica> replicas) {
  ensure_belongings(job, now() - kGroupTrusted);
  const std::vector<Pod> pods = pods_of(job);
  const std::multimap<size_t, const Pod*> predecessors = superseded(pods, replicas);
  const auto make = [&](size_t i) {
    const auto [begin, end] = predecessors.equal_range(i);
    for (auto entry = begin; entry != end; ++entry) {
      writer_.retire(*entry->second);
    }
    create_pod(job, pod_of(job, replicas[i], settings_.pods));
  };
  in_parallel(replicas.size(), settings_.pods_at_a_time, make, [&] { return is_wanted(job); });
  checks_.learn_success(job);  // of all of them: one may have been refused while another was not
  // Nothing changes in the status of a pod that hangs.
  if (!replicas.empty()) environment_.wake(key_of(job), now() + kFirstLook);
}

// Whether the view still has it, and nobody has asked for its end.
bool KubeCluster::is_wanted(const api::TrainingJob& job) const {
  const std::optional<WholeObject> object = jobs_.get(key_of(job));
  return object && object->meta.uid == job.uid && !object->meta.deleted;
}

void KubeCluster::create_pod(const api::TrainingJob& job, const Json& pod) {
  try {
    const std::optional<std::string> found = writer_.create(pod);
    if (found) report_conflict(job, kube::pods(), name_of(pod), *found);
  } catch (const ApiInvalid& error) {
    checks_.learn_refusal(job, pod, judge_refusal(error.status()), now());
    throw Unavailable(error.what());  // to look again, and say so
  } catch (const ApiUnavailable& error) {
    if (error.status().code == 403)
      checks_.learn_refusal(job, pod, judge_refusal(error.status()), now());
    throw;
  }
}

void KubeCluster::ensure_belongings(const api::TrainingJob& job, api::Time seen_since) {
  const Json group = pod_group_of(job);
  if (!begin_belongings(job.uid, member(group, "spec"), seen_since)) return;
  try {
    make_belongings(job, group);
  } catch (const ApiUnavailable& error) {
    lack_belongings(job.uid, error.status(), error.what());
    throw;
  } catch (const ApiInvalid& error) {
    lack_belongings(job.uid, error.status(), error.what());
    throw Unavailable(error.what());  // to look again, and say so
  } catch (const Unavailable&) {
    lack_belongings(job.uid, {}, "");
    throw;
  }
}

// False where they were seen; the PodGroup, of which no watch tells, `seen_since`. They are noted
// before they are made: what goes meanwhile takes the note away again.
bool KubeCluster::begin_belongings(const std::string& job_uid, const Json& group_spec,
                                   api::Time seen_since) {
  const std::lock_guard lock(mutex_);
  const auto known = with_belongings_.find(job_uid);
  if (known != with_belongings_.end() && known->second.group == group_spec) {
    if (group_spec.is_null() || known->second.seen >= seen_since) return false;
  }
  const auto refused = refused_.find(job_uid);
  if (refused != refused_.end()) throw Unavailable(refused->second);
  with_belongings_[job_uid] = {group_spec, now()};
  return true;
}

// A server that was not reached has refused nothing.
void KubeCluster::lack_belongings(const std::string& job_uid, const ApiStatus& status,
                                  const std::string& why) {
  const std::lock_guard lock(mutex_);
  with_belongings_.erase(job_uid);
  if (status.code != 0) refused_[job_uid] = why;
}

bool KubeCluster::take_refusal(const std::string& job_uid) {
  const std::lock_guard lock(mutex_);
  return refused_.erase(job_uid) > 0;
}

void KubeCluster::make_belongings(const api::TrainingJob& job, const Json& group) {
  const auto service = services_.get(key_of(job));
  if (!service || service->meta.owner_uid != job.uid) {
    ensure(job, kube::services(), service_of(job));
  }
  if (!group.is_null()) ensure_group(job, group);
}

// One that is there already may be of before the job was scaled.
void KubeCluster::ensure_group(const api::TrainingJob& job, const Json& group) {
  const Resource resource = pod_groups(group);
  const std::optional<Json> there = ensure(job, resource, group);
  if (!there) return;
  Json changed = Json::object();
  for (const auto& [field, value] : group.at("spec").items()) {
    if (member(member(*there, "spec"), field.c_str()) != value) changed[field] = value;
  }
  if (changed.empty()) return;
  const std::string uid = string_or(member(*there, "metadata"), "uid", "");
  client_.patch(resource, name_of(group), PatchKind::merge, {{"spec", changed}}, {uid, ""});
}

// What was there already of this job; nothing if it is there by this call.
std::optional<Json> KubeCluster::ensure(const api::TrainingJob& job, const Resource& resource,
                                        const Json& object) {
  try {
    client_.create(resource, object);
    return std::nullopt;
  } catch (const ApiUnavailable& error) {
    if (!error.status().already_exists()) throw;
  }
  std::optional<Json> there = client_.get(resource, name_of(object));
  if (!there)
    throw Unavailable(resource.kind + " " + key_of(job) + " was there, and is not any more");
  if (owner_uid_of(*there) == job.uid) return there;
  if (is_left_by_predecessor(*there, job)) {
    throw Unavailable(describe_owner(*there) + ", which is deleted, has yet to go");
  }
  report_conflict(job, resource, name_of(object), describe_owner(*there));
}

void KubeCluster::report_conflict(const api::TrainingJob& job, const Resource& resource,
                                  const ObjectName& name, const std::string& found) {
  {
    const std::lock_guard lock(mutex_);
    conflicts_[job.uid] = {resource, name};
  }
  throw Unavailable("a name of job " + key_of(job) + " is taken: " + found);
}

void KubeCluster::remove(const api::TrainingJob& job,
                         std::span<const plan::RemoveReplica> replicas) {
  std::set<std::string_view> uids;
  for (const plan::RemoveReplica& replica : replicas) uids.insert(replica.uid);
  std::vector<Pod> pods = pods_of(job);
  std::erase_if(pods,
                [&](const Pod& pod) { return pod.meta.deleted || !uids.contains(pod.meta.uid); });
  in_parallel(pods.size(), settings_.pods_at_a_time, [&](size_t i) { writer_.remove(pods[i]); });
}

void KubeCluster::emit(const api::TrainingJob& job, const plan::Event& event) {
  const Resource resource = training_jobs();
  environment_.emit({resource.api_version(), resource.kind, job.name_space, job.name, job.uid},
                    {event.kind == plan::Event::Kind::warning, event.reason, event.message});
}

void KubeCluster::remove_job(const api::TrainingJob& job) {
  Client::RemoveOptions options;
  options.preconditions.uid = job.uid;
  client_.remove(training_jobs(), {job.name_space, job.name}, options);
}

}  // namespace muster::kube
