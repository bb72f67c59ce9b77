#include "operator/kube/cluster/own_writes.h"

#include <algorithm>

#include "operator/kube/pods/observe.h"

namespace muster::kube {

namespace {

// Whether the pod is still as it was created: nobody has changed it yet.
bool is_untouched(const Pod& pod) {
  const auto replica = observe(pod);
  return replica && replica->phase == plan::Phase::pending && !replica->deleting &&
         replica->reason.empty();
}

}  // namespace

void OwnWrites::creating(const std::string& key) {
  const MutexLock lock(mutex_);
  creations_[key] = {};
}

void OwnWrites::created(const Pod& pod, Time now) {
  const MutexLock lock(mutex_);
  const auto found = creations_.find(pod.meta.key());
  if (found == creations_.end()) return;
  if (found->second.shown) {
    creations_.erase(found);
  } else {
    found->second.pod = pod;
    found->second.at = now;
  }
}

void OwnWrites::not_created(const std::string& key) {
  const MutexLock lock(mutex_);
  creations_.erase(key);
}

void OwnWrites::removed(const std::string& uid, Time now) {
  const MutexLock lock(mutex_);
  removals_[uid] = now;
}

void OwnWrites::not_removed(const std::string& uid) {
  const MutexLock lock(mutex_);
  removals_.erase(uid);
}

bool OwnWrites::is_known_creation(const Pod& pod) {
  const auto found = creations_.find(pod.meta.key());
  if (found == creations_.end()) return false;
  if (found->second.pod) {
    creations_.erase(found);
  } else {
    found->second.shown = true;
  }
  return is_untouched(pod);
}

// The deleted pod may be the predecessor of a new pod with the same name.
void OwnWrites::forget_creation(const Pod& gone) {
  const auto found = creations_.find(gone.meta.key());
  if (found == creations_.end()) return;
  const Creation& creation = found->second;
  if (creation.pod ? creation.pod->meta.uid == gone.meta.uid : creation.shown)
    creations_.erase(found);
}

bool OwnWrites::is_known_change(const Pod& before, const Pod& after) {
  auto was = observe(before);
  const auto is = observe(after);
  const bool asked = after.meta.deleted && removals_.contains(after.meta.uid);
  if (was && is && asked) {
    was->deleting = is->deleting;
    was->ended_first = is->ended_first;
  }
  return was == is && is_suspect(before) == is_suspect(after) && before.meta.uid == after.meta.uid;
}

bool OwnWrites::is_news(const Pod* before, const Pod* after) {
  const MutexLock lock(mutex_);
  if (before == nullptr) return !is_known_creation(*after);
  if (after != nullptr) return !is_known_change(*before, *after);
  removals_.erase(before->meta.uid);
  forget_creation(*before);
  // A pod that has ended and is not tracked any more is already counted, so its deletion is no
  // news.
  const auto replica = observe(*before);
  return is_tracked(*before) || !replica || is_live(*replica);
}

// Many jobs make many writes, so all writes are checked only once a second.
void OwnWrites::let_go_lost(Time now) {
  if (now >= looked_ && now - looked_ < std::chrono::seconds(1)) return;
  looked_ = now;
  std::erase_if(creations_, [&](const auto& entry) {
    return entry.second.pod && now - entry.second.at > kPatience;
  });
  std::erase_if(removals_, [&](const auto& entry) { return now - entry.second > kPatience; });
}

std::vector<Pod> OwnWrites::complete(std::vector<Pod> in_view, const std::string& job_uid,
                                     Time now) {
  const MutexLock lock(mutex_);
  let_go_lost(now);
  for (Pod& pod : in_view) {
    const auto removal = removals_.find(pod.meta.uid);
    if (removal != removals_.end() && !pod.meta.deleted) pod.meta.deleted = removal->second;
  }
  for (const auto& [key, creation] : creations_) {
    const std::optional<Pod>& made = creation.pod;
    if (!made || made->meta.owner_uid != job_uid) continue;
    const bool shown = std::ranges::any_of(
        in_view, [&made](const Pod& pod) { return pod.meta.uid == made->meta.uid; });
    if (!shown) in_view.push_back(*made);
  }
  return in_view;
}

}  // namespace muster::kube
