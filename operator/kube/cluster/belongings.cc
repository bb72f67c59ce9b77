#include "operator/kube/cluster/belongings.h"

#include "common/digest.h"
#include "common/documents/json.h"
#include "operator/kube/api/metadata.h"
#include "operator/kube/cluster/parallel.h"
#include "operator/kube/pods/disruption_budget.h"
#include "operator/kube/pods/names.h"
#include "operator/kube/pods/network_policy.h"
#include "operator/kube/pods/pods.h"
#include "operator/kube/pods/tfjob_pods.h"

namespace muster::kube {

namespace {

// Returns the resource of an object of unwatched_of().
Resource resource_of(const Json& object) {
  const std::string version = string_or(object, "apiVersion", ""),
                    kind = string_or(object, "kind", "");
  const size_t slash = version.find('/');
  const std::string plural = kind == "NetworkPolicy"         ? "networkpolicies"
                             : kind == "PodDisruptionBudget" ? "poddisruptionbudgets"
                                                             : "podgroups";
  return {version.substr(0, slash), version.substr(slash + 1), plural, kind};
}

// Returns the values that decide which Services the job has, without the templates, which seldom
// change. (A job that a TFJob owns may have thousands of Services.)
Json services_key(const api::TrainingJob& job) {
  Json replicas = Json::object();
  if (!is_tfjob(job)) return replicas;
  for (const auto& [role, spec] : job.replicas) replicas[api::name_of(role)] = spec.replicas;
  return replicas;
}

// Returns the fields that a Service of the training-operator lacks.
Json changes_of_taken_service(const api::TrainingJob& job) {
  return {{"metadata", {{"labels", {{kJobLabel, job.name}}}}},
          {"spec", {{"publishNotReadyAddresses", true}}}};
}

}  // namespace

// The network policy comes first, so that no pod is ever without it.
std::vector<Json> Belongings::unwatched_of(const api::TrainingJob& job) const {
  std::vector<Json> objects = {network_policy_of(job, http_peers_), pod_group_of(job),
                               disruption_budget_of(job)};
  std::erase_if(objects, [](const Json& object) { return object.is_null(); });
  return objects;
}

void Belongings::ensure(const api::TrainingJob& job, Time seen_since) {
  const std::vector<Json> unwatched = unwatched_of(job);
  if (!begin(job, unwatched, seen_since)) return;
  try {
    make(job, unwatched);
  } catch (const ApiUnavailable& error) {
    lack(job.uid, error.status(), error.what());
    throw;
  } catch (const ApiInvalid& error) {
    lack(job.uid, error.status(), error.what());
    throw Unavailable(error.what());  // so that the job is looked at again
  } catch (const Unavailable&) {
    lack(job.uid, {}, "");
    throw;
  }
}

// Returns false if there is nothing to do. The objects are noted before they are made: if a
// Service goes meanwhile, lost_service() removes the note again.
bool Belongings::begin(const api::TrainingJob& job, const std::vector<Json>& unwatched,
                       Time seen_since) {
  const std::string keys = job.status.keys();
  const std::string digest = sha256(services_key(job).dump() + Json(unwatched).dump());
  const MutexLock lock(mutex_);
  const auto known = seen_.find(job.uid);
  if (known != seen_.end() && known->second.objects == digest && known->second.keys == keys) {
    if (unwatched.empty() || known->second.at >= seen_since) return false;
  }
  const auto refused = refused_.find(job.uid);
  if (refused != refused_.end()) throw Unavailable(refused->second);
  seen_[job.uid] = {digest, keys, now_()};
  return true;
}

// Notes a refusal. A failed connection is not a refusal.
void Belongings::lack(const std::string& job_uid, const ApiStatus& status, const std::string& why) {
  const MutexLock lock(mutex_);
  seen_.erase(job_uid);
  if (status.code != 0) refused_[job_uid] = why;
}

bool Belongings::take_refusal(const std::string& job_uid) {
  const MutexLock lock(mutex_);
  return refused_.erase(job_uid) > 0;
}

void Belongings::lost_service(const std::string& job_uid) {
  const MutexLock lock(mutex_);
  seen_.erase(job_uid);
}

void Belongings::forget(const std::string& job_uid) {
  const MutexLock lock(mutex_);
  seen_.erase(job_uid);
  refused_.erase(job_uid);
}

void Belongings::make(const api::TrainingJob& job, const std::vector<Json>& unwatched) {
  const std::vector<Json> services = services_of(job);
  in_parallel(services.size(), at_a_time_, [&](size_t i) { make_service(job, services[i]); });
  if (!job.status.keys().empty()) make_keys(job);
  for (const Json& object : unwatched) make_unwatched(job, object);
}

void Belongings::make_service(const api::TrainingJob& job, const Json& service) {
  const auto in_view = services_.get(name_of(service).key());
  if (in_view && in_view->meta.owner_uid == job.uid) return;
  const std::optional<Json> there = make_object(job, kube::services(), service);
  if (!there || owner_uid_of(*there) == job.uid) return;
  // The new label brings the Service into view.
  client_.patch(kube::services(), name_of(service), PatchKind::merge, changes_of_taken_service(job),
                {uid_of(*there), ""});
}

void Belongings::make_keys(const api::TrainingJob& job) {
  try {
    client_.create(secrets(), secret_of(job, make_key_pair()));
  } catch (const ApiUnavailable& error) {
    if (!error.status().already_exists()) throw;
  }
}

// An existing object may have been created before the job was scaled or the operator's settings
// were changed, or somebody may have changed it.
void Belongings::make_unwatched(const api::TrainingJob& job, const Json& object) {
  const Resource resource = resource_of(object);
  const std::optional<Json> there = make_object(job, resource, object);
  if (!there) return;
  Json changes = Json::array();
  for (const auto& [field, value] : object.at("spec").items()) {
    if (member(member(*there, "spec"), field.c_str()) != value)
      changes.push_back({{"op", "add"}, {"path", "/spec/" + field}, {"value", value}});
  }
  if (changes.empty()) return;
  client_.patch(resource, name_of(object), PatchKind::json, changes, {uid_of(*there), ""});
}

// Returns the object of this job if it existed already; nothing if this call has created it.
std::optional<Json> Belongings::make_object(const api::TrainingJob& job, const Resource& resource,
                                            const Json& object) {
  try {
    client_.create(resource, object);
    return std::nullopt;
  } catch (const ApiUnavailable& error) {
    if (!error.status().already_exists()) throw;
  }
  std::optional<Json> there = client_.get(resource, name_of(object));
  if (!there)
    throw Unavailable(resource.kind + " " + name_of(object).key() +
                      " was there, and is not any more");
  if (is_of(job, resource, *there)) return there;
  const bool is_earlier_tfjobs =
      is_tfjob(job) && describe_owner(*there).ends_with(" of TFJob " + job.tfjob.name);
  if (is_left_by_predecessor(*there, object) || is_earlier_tfjobs) {
    throw Unavailable(describe_owner(*there) + ", which is deleted, has yet to go");
  }
  conflicts_.report(job, resource, name_of(object), describe_owner(*there));
}

}  // namespace muster::kube
