#include "operator/kube/cluster/job_pods.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "operator/kube/api/metadata.h"
#include "operator/kube/cluster/parallel.h"
#include "operator/kube/pods/observe.h"
#include "operator/kube/pods/pod_template.h"
#include "operator/kube/pods/tfjob_pods.h"

namespace muster::kube {

namespace {

// Returns the pods that `replicas` replace, by the index of the new replica in `replicas`.
std::multimap<size_t, const Pod*> superseded(const std::vector<Pod>& pods,
                                             std::span<const plan::CreateReplica> replicas) {
  std::map<std::pair<api::Role, int>, size_t> places;
  for (size_t i = 0; i < replicas.size(); ++i) places[{replicas[i].role, replicas[i].index}] = i;
  std::multimap<size_t, const Pod*> result;
  for (const Pod& pod : pods) {
    const auto other = kube::observe(pod);
    if (!other) continue;
    const auto place = places.find({other->role, other->index});
    if (place == places.end() || other->attempt >= replicas[place->second].attempt) continue;
    result.emplace(place->second, &pod);
  }
  return result;
}

}  // namespace

JobPods::JobPods(const Client& client, Store<Pod>& store, NameConflicts& conflicts,
                 PodSettings settings, size_t at_a_time, Now now)
    : client_(client),
      store_(store),
      conflicts_(conflicts),
      settings_(std::move(settings)),
      at_a_time_(at_a_time),
      now_(std::move(now)),
      checks_(
          [this](const Json& pod) {
            WriteOptions options;
            options.dry_run = options.strict = true;
            client_.create(kube::pods(), pod, options);
          },
          [this](const Json& pod) { return refusal_of(pod, settings_); }),
      writer_(client_, store_, own_writes_, now_) {}

std::vector<Pod> JobPods::of(const api::TrainingJob& job) {
  std::vector<Pod> pods = store_.find(job.name_space, job.name);
  std::erase_if(pods, [&](const Pod& pod) { return pod.meta.owner_uid != job.uid; });
  return own_writes_.complete(std::move(pods), job.uid, now_());
}

Acceptance JobPods::check(const api::TrainingJob& job, const Json& whole) {
  const auto pod_of_role = [&](api::Role role) {
    return pod_of(job, {role, 0, job.status.run, 0}, settings_);
  };
  return checks_.check(job, whole, pod_of_role, now_());
}

void JobPods::create(const api::TrainingJob& job, std::span<const plan::CreateReplica> replicas,
                     const std::function<bool()>& wanted) {
  const std::vector<Pod> pods = of(job);
  const std::multimap<size_t, const Pod*> predecessors = superseded(pods, replicas);
  Mutex mutex;
  std::optional<NameIsHeld> held;  // the others do not wait for it
  const auto make = [&](size_t i) {
    try {
      const auto [begin, end] = predecessors.equal_range(i);
      for (auto entry = begin; entry != end; ++entry) give_way(job, *entry->second);
      create_pod(job, pod_of(job, replicas[i], settings_));
    } catch (const NameIsHeld& error) {
      const MutexLock lock(mutex);
      if (!held) held = error;
    }
  };
  in_parallel(replicas.size(), at_a_time_, make, wanted);
  if (held) throw NameIsHeld(*held);
  checks_.learn_success(job);  // only if all succeeded: one may have been refused and another not
}

// Frees the address of a pod for its successor and, in a job that a TFJob owns, the pod's name.
void JobPods::give_way(const api::TrainingJob& job, const Pod& pod) {
  if (!has_ended(pod) && is_current(pod)) writer_.retire(pod);
  if (is_tfjob(job)) writer_.make_room(pod);
}

void JobPods::create_pod(const api::TrainingJob& job, const Json& pod) {
  if (const auto why = refusal_of(pod, settings_)) {
    Acceptance refusal;
    refusal.invalid = why;
    checks_.learn_refusal(job, pod, std::move(refusal), now_());
    throw Unavailable(*why);  // so that the job is looked at again
  }
  try {
    const std::optional<std::string> found = writer_.create(elsewhere(job, pod));
    if (found) conflicts_.report(job, kube::pods(), name_of(pod), *found);
  } catch (const ApiInvalid& error) {
    checks_.learn_refusal(job, pod, judge_refusal(error.status()), now_());
    throw Unavailable(error.what());  // so that the job is looked at again
  } catch (const ApiUnavailable& error) {
    if (error.status().code == 403)
      checks_.learn_refusal(job, pod, judge_refusal(error.status()), now_());
    throw;
  }
}

void JobPods::remove(const api::TrainingJob& job, std::span<const plan::RemoveReplica> replicas) {
  std::set<std::string_view> uids;
  for (const plan::RemoveReplica& replica : replicas) uids.insert(replica.uid);
  std::vector<Pod> pods = of(job);
  std::erase_if(pods,
                [&](const Pod& pod) { return pod.meta.deleted || !uids.contains(pod.meta.uid); });
  in_parallel(pods.size(), at_a_time_, [&](size_t i) { writer_.remove(pods[i]); });
}

void JobPods::hand_on_request(const api::TrainingJob& job, const std::vector<Pod>& pods) {
  const std::string& request = job.checkpoint_request;
  if (request.empty()) return;
  for (const Pod& pod : pods) {
    const auto replica = kube::observe(pod);
    if (!replica || !plan::is_live(*replica) || !is_current(pod)) continue;
    const bool has_it = pod.meta.checkpoint_request == request;
    if (takes_requests(job, replica->role, replica->index) && !has_it)
      writer_.ask_for_checkpoint(pod, request);
  }
}

void JobPods::let_go_counted(const api::TrainingJob& job, const api::JobStatus& status,
                             const std::vector<Pod>& pods) {
  const bool clean = job.run_policy.clean_pod_policy != api::CleanPodPolicy::none;
  const auto lives_on = [&](const Pod& pod) { return clean && outlives_replica(pod); };
  const std::set<std::string_view> counted(status.counted_uids.begin(), status.counted_uids.end());
  std::vector<const Pod*> done;
  for (const Pod& pod : pods) {
    if (!counted.contains(pod.meta.uid)) continue;
    if (lives_on(pod) || is_tracked(pod)) done.push_back(&pod);
  }
  in_parallel(done.size(), at_a_time_, [&](size_t i) {
    if (lives_on(*done[i])) writer_.remove(*done[i]);
    writer_.untrack(*done[i]);
  });
}

void JobPods::let_go_orphans(const std::string& name_space, const std::string& name,
                             const std::string& live_uid) {
  std::vector<Pod> orphans = store_.find(name_space, name);
  std::erase_if(orphans, [&](const Pod& pod) {
    return !is_tracked(pod) || (!live_uid.empty() && pod.meta.owner_uid == live_uid);
  });
  if (orphans.empty()) return;
  // A view that does not have the pods' job yet, or still has the job before it, is no reason to
  // release them: ask the server.
  const auto job = client_.get(training_jobs(), {name_space, name});
  const std::string uid = job ? uid_of(*job) : "";
  for (const Pod& pod : orphans) {
    if (!uid.empty() && pod.meta.owner_uid == uid) continue;
    writer_.untrack(pod);
  }
}

}  // namespace muster::kube
