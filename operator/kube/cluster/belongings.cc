#include "operator/kube/cluster/belongings.h"

#include "common/digest.h"
#include "common/json.h"
#include "operator/kube/api/metadata.h"
#include "operator/kube/cluster/parallel.h"
#include "operator/kube/pods/disruption_budget.h"
#include "operator/kube/pods/names.h"
#include "operator/kube/pods/network_policy.h"
#include "operator/kube/pods/pods.h"

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

// Whether the object's owner is a deleted job of this name: the garbage collector will then delete
// it.
bool is_left_by_predecessor(const Json& object, const api::TrainingJob& job) {
  for (const Json& owner : member(member(object, "metadata"), "ownerReferences")) {
    if (string_or(owner, "kind", "") == training_jobs().kind &&
        string_or(owner, "name", "") == job.name && string_or(owner, "uid", "") != job.uid) {
      return true;
    }
  }
  return false;
}

}  // namespace

// The policy comes first, so that a pod is never without it.
std::vector<Json> Belongings::unwatched_of(const api::TrainingJob& job) const {
  std::vector<Json> objects = {network_policy_of(job, http_peers_), pod_group_of(job),
                               disruption_budget_of(job)};
  std::erase_if(objects, [](const Json& object) { return object.is_null(); });
  return objects;
}

void Belongings::ensure(const api::TrainingJob& job, Time seen_since) {
  const Objects objects = {services_of(job), unwatched_of(job)};
  if (!begin(job, objects, seen_since)) return;
  try {
    make(job, objects);
  } catch (const ApiUnavailable& error) {
    lack(job.uid, error.status(), error.what());
    throw;
  } catch (const ApiInvalid& error) {
    lack(job.uid, error.status(), error.what());
    throw Unavailable(error.what());  // to look again, and say so
  } catch (const Unavailable&) {
    lack(job.uid, {}, "");
    throw;
  }
}

// Returns false if there is nothing to do. The objects are noted before they are made: if a
// Service goes meanwhile, lost_service() removes the note again.
bool Belongings::begin(const api::TrainingJob& job, const Objects& objects, Time seen_since) {
  const std::string keys = job.status.keys();
  const std::string digest = sha256(Json({objects.services, objects.unwatched}).dump());
  const MutexLock lock(mutex_);
  const auto known = seen_.find(job.uid);
  if (known != seen_.end() && known->second.objects == digest && known->second.keys == keys) {
    if (objects.unwatched.empty() || known->second.at >= seen_since) return false;
  }
  const auto refused = refused_.find(job.uid);
  if (refused != refused_.end()) throw Unavailable(refused->second);
  seen_[job.uid] = {digest, keys, now_()};
  return true;
}

// Notes a refusal. A server that was not reached has refused nothing.
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

void Belongings::make(const api::TrainingJob& job, const Objects& objects) {
  in_parallel(objects.services.size(), at_a_time_,
              [&](size_t i) { make_service(job, objects.services[i]); });
  if (!job.status.keys().empty()) make_keys(job);
  for (const Json& object : objects.unwatched) make_unwatched(job, object);
}

void Belongings::make_service(const api::TrainingJob& job, const Json& service) {
  const auto there = services_.get(name_of(service).key());
  if (!there || there->meta.owner_uid != job.uid) make_object(job, kube::services(), service);
}

void Belongings::make_keys(const api::TrainingJob& job) {
  try {
    client_.create(secrets(), secret_of(job, make_key_pair()));
  } catch (const ApiUnavailable& error) {
    if (!error.status().already_exists()) throw;
  }
}

// An object that is there already may have been made before the job was scaled or the operator got
// other settings, or somebody may have changed it.
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

// Returns the object of this job if it was there already; nothing if this call has made it.
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
  if (is_left_by_predecessor(*there, job)) {
    throw Unavailable(describe_owner(*there) + ", which is deleted, has yet to go");
  }
  conflicts_.report(job, resource, name_of(object), describe_owner(*there));
}

}  // namespace muster::kube
