#include "operator/kube/cluster/kube_cluster.h"

#include <algorithm>
#include <utility>

#include "common/documents/json.h"
#include "common/random.h"
#include "operator/api/progress.h"
#include "operator/api/status.h"
#include "operator/kube/api/codec.h"
#include "operator/kube/pods/names.h"
#include "operator/kube/pods/observe.h"
#include "operator/kube/pods/tfjob_pods.h"
#include "operator/plan/replicas.h"
#include "operator/plan/retry.h"

namespace muster::kube {

namespace {

using namespace std::chrono_literals;

constexpr auto kAskAgainAboutConflict = 10s;
constexpr auto kAskAgainAboutRefusal = 10s;
constexpr auto kAskAgainAboutRequest = 30s;
// The largest age of our knowledge of objects that no watch covers, when pods are created. Nothing
// reports the deletion of such objects.
constexpr auto kUnwatchedTrusted = 10s;
constexpr auto kFirstLook = 2s;  // at pods that were created
constexpr auto kNameIsHeld = 5s;

bool is_ours(const api::TrainingJob& job) {
  return job.managed_by == api::kManagedByMuster;
}
bool is_ours(const Json& job) {
  const Json& spec = member(job, "spec");
  return string_or(spec, "managedBy", api::kManagedByMuster) == api::kManagedByMuster;
}

int restarts_of(const api::JobStatus& status, api::Role role) {
  const auto found = status.replica_statuses.find(role);
  return found == status.replica_statuses.end() ? 0 : found->second.restarts;
}

}  // namespace

KubeCluster::KubeCluster(Transport& transport, Settings settings, Environment environment)
    : environment_(std::move(environment)),
      transport_(transport, environment_.leads),
      client_(transport_),
      jobs_({}, [this](const auto* before, const auto* after) { job_changed(before, after); }),
      pods_(kJobLabel,
            [this](const auto* before, const auto* after) { pod_changed(before, after); }),
      services_(kJobLabel,
                [this](const auto* before, const auto* after) { service_changed(before, after); }),
      conflicts_(client_),
      belongings_(client_, services_, conflicts_, std::move(settings.http_peers),
                  settings.pods_at_a_time, environment_.now),
      job_pods_(client_, pods_, conflicts_, std::move(settings.pods), settings.pods_at_a_time,
                environment_.now),
      observer_(client_, environment_),
      starts_(settings.reports_per_second, std::chrono::milliseconds(0)),
      reports_(settings.reports_per_second) {}

void KubeCluster::job_changed(const WholeObject* before, const WholeObject* after) {
  const ObjectMeta& meta = after != nullptr ? after->meta : before->meta;
  if (environment_.job_changed) environment_.job_changed(meta.key());
  if (after != nullptr) {
    const Json job = after->json();
    if (is_ours(job)) {
      const Json& policy = member(member(job, "spec"), "runPolicy");
      std::optional<int64_t> deadline;
      if (given(policy, "activeDeadlineSeconds"))
        deadline = integer_or(policy, "activeDeadlineSeconds", 0);
      note(meta, deadline, api::to_job_status(member(job, "status")));
    }
  }
  const bool same = before != nullptr && after != nullptr && before->meta.uid == after->meta.uid &&
                    before->meta.generation == after->meta.generation &&
                    before->meta.labels == after->meta.labels &&
                    before->meta.checkpoint_request == after->meta.checkpoint_request &&
                    before->meta.deleted.has_value() == after->meta.deleted.has_value();
  if (same) return;  // only the status changed, and only we write it
  if (before != nullptr && (after == nullptr || before->meta.uid != after->meta.uid)) {
    states_.forget(before->meta.uid);
  }
  environment_.wake(meta.key(), now());
}

void KubeCluster::note(const ObjectMeta& job, std::optional<int64_t> deadline_seconds,
                       const api::JobStatus& status) {
  const api::Time created = job.created.value_or(now());
  states_.note({job.uid, job.name_space, job.name, created, deadline_seconds}, status, now());
}

void KubeCluster::pod_changed(const Pod* before, const Pod* after) {
  const ObjectMeta& meta = after != nullptr ? after->meta : before->meta;
  const bool is_gone =
      before != nullptr && (after == nullptr || after->meta.uid != before->meta.uid);
  if (is_gone) observer_.forget_pod(before->meta.uid);
  const bool is_news = job_pods_.is_news(before, after);
  if (!is_news && (after == nullptr || !is_orphan(*after))) return;
  environment_.wake(meta.name_space + "/" + meta.label(kJobLabel), now());
}

// Whether the pod waits to be released and the last pass was not about its job, so that only this
// pod can cause another pass.
bool KubeCluster::is_orphan(const Pod& pod) {
  if (!is_tracked(pod)) return false;
  const MutexLock lock(mutex_);
  const auto known = uids_.find(pod.meta.name_space + "/" + pod.meta.label(kJobLabel));
  return known == uids_.end() || known->second != pod.meta.owner_uid;
}

void KubeCluster::service_changed(const Service* before, const Service* after) {
  if (after != nullptr) return;
  const std::string key = before->meta.name_space + "/" + before->meta.label(kJobLabel);
  {
    const MutexLock lock(mutex_);
    const auto known = uids_.find(key);
    if (known != uids_.end()) belongings_.lost_service(known->second);
  }
  environment_.wake(key, now());
}

// The first pass that finds a job gone, or another job with its name, forgets what earlier passes
// have noted about the job. At that time no pass of the old job is under way that could note it
// again.
void KubeCluster::begin_pass(const std::string& key, const std::string& job_uid) {
  std::string before;
  {
    const MutexLock lock(mutex_);
    std::string& known = uids_[key];
    before = std::exchange(known, job_uid);
    if (job_uid.empty()) uids_.erase(key);
  }
  if (!before.empty() && before != job_uid) forget(before, key);
}

void KubeCluster::forget(const std::string& job_uid, const std::string& key) {
  job_pods_.forget(job_uid);
  starts_.forget(job_uid);
  reports_.forget(job_uid);
  observer_.forget_job(key);
  belongings_.forget(job_uid);
  conflicts_.forget(job_uid);
  states_.forget(job_uid);
}

std::set<std::string> KubeCluster::keys() const {
  std::set<std::string> keys;
  for (std::string& key : jobs_.keys()) keys.insert(std::move(key));
  for (std::string& key : pods_.labelled()) keys.insert(std::move(key));
  return keys;
}

bool KubeCluster::is_finished(const std::string& key) const {
  const std::optional<WholeObject> job = jobs_.get(key);
  return job && states_.is_finished(job->meta.uid);
}

std::optional<api::TrainingJob> KubeCluster::get(const std::string& key) {
  const std::optional<WholeObject> object = jobs_.get(key);
  const size_t slash = key.find('/');
  const std::string name_space = key.substr(0, slash), name = key.substr(slash + 1);
  begin_pass(key, object ? object->meta.uid : "");
  job_pods_.let_go_orphans(name_space, name, object ? object->meta.uid : "");
  if (!object) return std::nullopt;
  try {
    return api::to_training_job(object->json());
  } catch (const Json::exception& error) {
    // The schema of the CRD does not allow this.
    throw Invalid("TrainingJob " + key + ": " + error.what());
  }
}

plan::Observed KubeCluster::observe(const api::TrainingJob& job) {
  plan::Observed observed;
  observed.nonce = random_digits();
  if (!is_ours(job)) return observed;
  const std::vector<Pod> pods = job_pods_.of(job);
  if (job.deleting) {
    for (const Pod& pod : pods) job_pods_.let_go(pod);
    return observed;
  }
  job_pods_.let_go_counted(job, job.status, pods);
  observed.replicas = observer_.observe(job, pods);
  observed.progress = observer_.progress_of(job);
  observed.ledger = observer_.ledger_of(job);
  observed.results = final_results(job, pods);
  if (plan::stays_finished(job)) return observed;
  hand_on_request(job, pods);
  check_acceptance(job, observed);
  // If no replica is missing, the existing pods prove that pods can be created.
  if (!plan::lacks_replicas(job, observed) && !plan::asks_for_more(job)) observed.unchecked.reset();
  if (!observed.name_conflict) keep_belongings(job, observed);
  tell_quota_apart(observed);
  return observed;
}

// No other work of the job waits for this request.
void KubeCluster::hand_on_request(const api::TrainingJob& job, const std::vector<Pod>& pods) {
  try {
    job_pods_.hand_on_request(job, pods);
  } catch (const Unavailable& error) {
    emit(job, {plan::Event::Kind::warning, "CheckpointNotRequested", error.what()});
    environment_.wake(key_of(job), now() + kAskAgainAboutRequest);
  }
}

// Creates the job's objects again if somebody has deleted them, and tries again if the server has
// refused them. A failure is reported in the job's status, and the job continues with the objects
// that it has.
void KubeCluster::keep_belongings(const api::TrainingJob& job, plan::Observed& observed) {
  const bool needed = belongings_.take_refusal(job.uid) && !job.suspend && !job.hold;
  if (!needed && std::ranges::none_of(observed.replicas, plan::is_live)) return;
  try {
    belongings_.ensure(job, /*seen_since=*/{});
  } catch (const Unavailable& error) {
    if (!observed.unchecked) observed.unchecked = error.what();
    environment_.wake(key_of(job), now() + kAskAgainAboutRefusal);
  }
}

void KubeCluster::check_acceptance(const api::TrainingJob& job, plan::Observed& observed) {
  observed.name_conflict = conflicts_.look(job);
  if (observed.name_conflict) environment_.wake(key_of(job), now() + kAskAgainAboutConflict);
  // A job that this process or another one has accepted is not checked again.
  const bool known =
      job.status.is_true("Accepted") && job.status.observed_generation == job.generation;
  if (known && !job_pods_.has_trouble(job.uid)) return;
  const std::optional<WholeObject> whole = jobs_.get(key_of(job));
  if (!whole || whole->meta.uid != job.uid) return;
  const Acceptance acceptance = job_pods_.check(job, whole->json());
  observed.invalid_template = acceptance.invalid;
  observed.unchecked = acceptance.unchecked;
  if (acceptance.again) environment_.wake(key_of(job), *acceptance.again);
}

// A quota that refuses pods is not the job's fault: it is reported separately.
void KubeCluster::tell_quota_apart(plan::Observed& observed) {
  if (!observed.unchecked) return;
  if (auto quota = quota_in(*observed.unchecked)) {
    observed.quota = std::move(quota);
    observed.unchecked.reset();
  } else {
    observed.unchecked = without_object_name(*observed.unchecked);
  }
}

bool KubeCluster::publish_status(const api::TrainingJob& job, const api::JobStatus& status) {
  const bool starts = is_start(job, status);
  const bool is_news_of_tfjob =
      is_tfjob(job) && any_trains(job, status) != any_trains(job, job.status);
  if (!is_news_of_tfjob && (starts || is_report(job.status, status))) {
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
    job_pods_.let_go_counted(job, status, job_pods_.of(job));
  } catch (const Unavailable&) {
    // The decision is already written, so the next pass must report it and carry it out.
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
  if (before && before->meta.uid == job.uid)
    note(before->meta, job.run_policy.active_deadline_seconds, status);
  if (environment_.job_changed) environment_.job_changed(key_of(job));
}

// Reports what is new in this status: as an event, and to the watcher.
void KubeCluster::count(const api::TrainingJob& job, const api::JobStatus& status) {
  // `step` alone may come from another job, if this job continues from that job's checkpoint.
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

void KubeCluster::create(const api::TrainingJob& job,
                         std::span<const plan::CreateReplica> replicas) {
  belongings_.ensure(job, now() - kUnwatchedTrusted);
  // The job is woken because the status of a pod that hangs does not change.
  if (!replicas.empty()) environment_.wake(key_of(job), now() + kFirstLook);
  try {
    job_pods_.create(job, replicas, [&] { return is_wanted(job); });
  } catch (const NameIsHeld& error) {  // a replica may have to wait: that is no trouble of the pass
    emit(job, {plan::Event::Kind::normal, "PodNameIsHeld", error.what()});
    environment_.wake(key_of(job), now() + kNameIsHeld);
  }
}

// Whether the view still has the job, and nobody has asked to delete it.
bool KubeCluster::is_wanted(const api::TrainingJob& job) const {
  const std::optional<WholeObject> object = jobs_.get(key_of(job));
  return object && object->meta.uid == job.uid && !object->meta.deleted;
}

void KubeCluster::remove(const api::TrainingJob& job,
                         std::span<const plan::RemoveReplica> replicas) {
  job_pods_.remove(job, replicas);
}

void KubeCluster::emit(const api::TrainingJob& job, const plan::Event& event) {
  const EventText text{event.kind == plan::Event::Kind::warning, event.reason, event.message};
  environment_.emit(subject_of(training_jobs(), job.name_space, job.name, job.uid), text);
  // Users of a TFJob do not look at its TrainingJob.
  if (is_tfjob(job) && !is_told_by_tfjob(event.reason))
    environment_.emit(subject_of(tfjobs(), job.name_space, job.tfjob.name, job.tfjob.uid), text);
}

void KubeCluster::remove_job(const api::TrainingJob& job) {
  Client::RemoveOptions options;
  // Only this version may go: somebody may have given the job more to do.
  options.preconditions = {job.uid, job.resource_version};
  client_.remove(training_jobs(), {job.name_space, job.name}, options);
}

}  // namespace muster::kube
