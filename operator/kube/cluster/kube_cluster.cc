#include "operator/kube/cluster/kube_cluster.h"

#include <algorithm>

#include "common/json.h"
#include "operator/api/overview.h"
#include "operator/api/status.h"
#include "operator/kube/pods/names.h"
#include "operator/kube/pods/observe.h"
#include "operator/plan/replicas.h"

namespace muster::kube {

namespace {

using namespace std::chrono_literals;

constexpr auto kAskAgainAboutConflict = 10s;
constexpr auto kAskAgainAboutRefusal = 10s;

bool is_ours(const api::TrainingJob& job) {
  return job.managed_by == api::kManagedByMuster;
}
bool is_ours(const Json& job) {
  const Json& spec = member(job, "spec");
  return string_or(spec, "managedBy", api::kManagedByMuster) == api::kManagedByMuster;
}

ProgressPoller make_poller(const KubeCluster::Environment& environment) {
  const auto on_news = [wake = environment.wake, now = environment.now](const std::string& key) {
    wake(key, now());
  };
  if (!environment.ask_progress) return {{}, on_news};
  return {{}, on_news, environment.ask_progress};
}

}  // namespace

KubeCluster::KubeCluster(Transport& transport, Settings settings, Environment environment)
    : settings_(std::move(settings)),
      environment_(std::move(environment)),
      transport_(transport, environment_.leads),
      client_(transport_),
      jobs_({}, [this](const auto* before, const auto* after) { job_changed(before, after); }),
      pods_(kJobLabel,
            [this](const auto* before, const auto* after) { pod_changed(before, after); }),
      services_(kJobLabel,
                [this](const auto* before, const auto* after) { service_changed(before, after); }),
      writer_(client_, pods_, own_writes_, environment_.now),
      lost_nodes_(client_),
      node_leases_(client_, environment_.boot_time ? environment_.boot_time : boot_time),
      troubles_(client_),
      checks_([this](const Json& pod) {
        WriteOptions options;
        options.dry_run = options.strict = true;
        client_.create(kube::pods(), pod, options);
      }),
      starts_(settings_.reports_per_second, std::chrono::milliseconds(0)),
      reports_(settings_.reports_per_second),
      poller_(make_poller(environment_)) {}

void KubeCluster::job_changed(const WholeObject* before, const WholeObject* after) {
  const ObjectMeta& meta = after != nullptr ? after->meta : before->meta;
  if (after != nullptr) {
    const Json job = after->json();
    if (is_ours(job)) note_state(meta.uid, api::to_job_status(member(job, "status")));
  }
  const bool same = before != nullptr && after != nullptr && before->meta.uid == after->meta.uid &&
                    before->meta.generation == after->meta.generation &&
                    before->meta.deleted.has_value() == after->meta.deleted.has_value();
  if (same) return;  // only its status: nobody but us writes that
  if (before != nullptr && (after == nullptr || before->meta.uid != after->meta.uid)) {
    forget_state(before->meta.uid);
  }
  environment_.wake(meta.key(), now());
}

void KubeCluster::pod_changed(const Pod* before, const Pod* after) {
  const ObjectMeta& meta = after != nullptr ? after->meta : before->meta;
  if (after == nullptr) {
    const std::lock_guard lock(mutex_);
    given_up_.erase(meta.uid);
  }
  const bool is_news = own_writes_.is_news(before, after);
  if (!is_news && (after == nullptr || !is_orphan(*after))) return;
  environment_.wake(meta.name_space + "/" + meta.label(kJobLabel), now());
}

// Waits to be let go, and the last pass was not about its job: none may follow but for this pod.
bool KubeCluster::is_orphan(const Pod& pod) {
  if (!is_tracked(pod)) return false;
  const std::lock_guard lock(mutex_);
  const auto known = uids_.find(pod.meta.name_space + "/" + pod.meta.label(kJobLabel));
  return known == uids_.end() || known->second != pod.meta.owner_uid;
}

void KubeCluster::service_changed(const Service* before, const Service* after) {
  if (after != nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    with_belongings_.erase(before->meta.owner_uid);
  }
  environment_.wake(before->meta.name_space + "/" + before->meta.label(kJobLabel), now());
}

// What passes have learnt of a job is forgotten by the first one that finds it gone, or another job
// of its name: none of the old one is under way then that would learn it again.
void KubeCluster::begin_pass(const std::string& key, const std::string& job_uid) {
  std::string before;
  {
    const std::lock_guard lock(mutex_);
    std::string& known = uids_[key];
    before = std::exchange(known, job_uid);
    if (job_uid.empty()) uids_.erase(key);
  }
  if (!before.empty() && before != job_uid) forget(before, key);
}

void KubeCluster::forget(const std::string& job_uid, const std::string& key) {
  checks_.forget(job_uid);
  starts_.forget(job_uid);
  reports_.forget(job_uid);
  poller_.forget(key);
  const std::lock_guard lock(mutex_);
  with_belongings_.erase(job_uid);
  refused_.erase(job_uid);
  conflicts_.erase(job_uid);
  states_.erase(job_uid);
}

void KubeCluster::note_state(const std::string& job_uid, const api::JobStatus& status) {
  const std::string state = api::state_word(status);
  const std::lock_guard lock(mutex_);
  known_states_.insert(state);
  states_[job_uid] = state;
}

void KubeCluster::forget_state(const std::string& job_uid) {
  const std::lock_guard lock(mutex_);
  states_.erase(job_uid);
}

std::set<std::string> KubeCluster::keys() const {
  std::set<std::string> keys;
  for (std::string& key : jobs_.keys()) keys.insert(std::move(key));
  for (std::string& key : pods_.labelled()) keys.insert(std::move(key));
  return keys;
}

std::map<std::string, int> KubeCluster::jobs_by_state() {
  const std::lock_guard lock(mutex_);
  std::map<std::string, int> counts;
  for (const std::string& state : known_states_) counts[state] = 0;
  for (const auto& [uid, state] : states_) ++counts[state];
  return counts;
}

std::optional<api::TrainingJob> KubeCluster::get(const std::string& key) {
  const std::optional<WholeObject> object = jobs_.get(key);
  const size_t slash = key.find('/');
  const std::string name_space = key.substr(0, slash), name = key.substr(slash + 1);
  begin_pass(key, object ? object->meta.uid : "");
  let_go_orphans(name_space, name, object ? object->meta.uid : "");
  if (!object) return std::nullopt;
  try {
    return api::to_training_job(object->json());
  } catch (const Json::exception& error) {
    // The schema of the CRD lets no such thing pass.
    throw Invalid("TrainingJob " + key + ": " + error.what());
  }
}

// Pods of jobs that are gone: nobody counts their ends any more.
void KubeCluster::let_go_orphans(const std::string& name_space, const std::string& name,
                                 const std::string& live_uid) {
  std::vector<Pod> orphans = pods_.find(name_space, name);
  std::erase_if(orphans, [&](const Pod& pod) {
    return !is_tracked(pod) || (!live_uid.empty() && pod.meta.owner_uid == live_uid);
  });
  if (orphans.empty()) return;
  // A view that has their job not yet, or the one before it, is no reason.
  const auto job = client_.get(training_jobs(), {name_space, name});
  const std::string uid = job ? string_or(member(*job, "metadata"), "uid", "") : "";
  for (const Pod& pod : orphans) {
    if (!uid.empty() && pod.meta.owner_uid == uid) continue;
    writer_.untrack(pod);
  }
}

std::vector<Pod> KubeCluster::pods_of(const api::TrainingJob& job) {
  std::vector<Pod> pods = pods_.find(job.name_space, job.name);
  std::erase_if(pods, [&](const Pod& pod) { return pod.meta.owner_uid != job.uid; });
  return own_writes_.complete(std::move(pods), job.uid, now());
}

plan::Observed KubeCluster::observe(const api::TrainingJob& job) {
  plan::Observed observed;
  if (!is_ours(job)) return observed;
  std::vector<Pod> pods = pods_of(job);
  if (job.deleting) {
    for (const Pod& pod : pods) writer_.untrack(pod);
    return observed;
  }
  let_go_counted(job, job.status, pods);
  follow_progress(job, pods);
  const View view = view_of(job, pods);
  for (const Pod& pod : pods) {
    const auto replica = kube::observe(pod);
    if (replica) observed.replicas.push_back(look_at(job, view, pod, *replica));
  }
  explain_pending(job, pods, observed.replicas);
  observed.progress = progress_of(job);
  observed.results = final_results(job, pods);
  if (job.status.is_true("Finished")) return observed;
  check_acceptance(job, observed);
  // If no replica is missing, pods can be created: those that are there prove it.
  if (!plan::lacks_replicas(job, observed)) observed.unchecked.reset();
  if (!observed.name_conflict) keep_belongings(job, observed);
  settle_doubts(observed);
  return observed;
}

// Somebody may have deleted them; and where they were refused it is tried here whether they still
// are. The job is told, and goes on with what it has.
void KubeCluster::keep_belongings(const api::TrainingJob& job, plan::Observed& observed) {
  const bool needed = take_refusal(job.uid) && !job.suspend;
  if (!needed && std::ranges::none_of(observed.replicas, plan::is_live)) return;
  try {
    ensure_belongings(job, /*seen_since=*/{});
  } catch (const Unavailable& error) {
    if (!observed.unchecked) observed.unchecked = error.what();
    environment_.wake(key_of(job), now() + kAskAgainAboutRefusal);
  }
}

void KubeCluster::check_acceptance(const api::TrainingJob& job, plan::Observed& observed) {
  observed.name_conflict = still_in_conflict(job);
  // What another process, or this one before, has found good is not asked again.
  const bool known =
      job.status.is_true("Accepted") && job.status.observed_generation == job.generation;
  if (known && !checks_.has_trouble(job.uid)) return;
  const std::optional<WholeObject> whole = jobs_.get(key_of(job));
  if (!whole || whole->meta.uid != job.uid) return;
  const auto pod_of_role = [&](api::Role role) {
    return pod_of(job, {role, 0, job.status.run, 0}, settings_.pods);
  };
  const Acceptance acceptance = checks_.check(job, whole->json(), pod_of_role, now());
  observed.invalid_template = acceptance.invalid;
  observed.unchecked = acceptance.unchecked;
  if (acceptance.again) environment_.wake(key_of(job), *acceptance.again);
}

// A quota that refuses pods is no fault of the job: it is reported on its own.
void KubeCluster::settle_doubts(plan::Observed& observed) {
  if (!observed.unchecked) return;
  if (auto quota = quota_in(*observed.unchecked)) {
    observed.quota = std::move(quota);
    observed.unchecked.reset();
  } else {
    observed.unchecked = without_object_name(*observed.unchecked);
  }
}

// Looks whether what holds a name of ours is still there; nothing tells us when it goes.
std::optional<std::string> KubeCluster::still_in_conflict(const api::TrainingJob& job) {
  std::optional<Conflict> conflict;
  {
    const std::lock_guard lock(mutex_);
    const auto found = conflicts_.find(job.uid);
    if (found != conflicts_.end()) conflict = found->second;
  }
  if (!conflict) return std::nullopt;
  const auto there = client_.get(conflict->resource, conflict->name);
  if (there && owner_uid_of(*there) != job.uid) {
    environment_.wake(key_of(job), now() + kAskAgainAboutConflict);
    return describe_owner(*there);
  }
  const std::lock_guard lock(mutex_);
  conflicts_.erase(job.uid);
  return std::nullopt;
}

}  // namespace muster::kube
