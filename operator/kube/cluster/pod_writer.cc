#include "operator/kube/cluster/pod_writer.h"

#include <algorithm>

#include "common/documents/json.h"
#include "operator/kube/api/codec.h"
#include "operator/kube/api/metadata.h"
#include "operator/kube/pods/names.h"
#include "operator/kube/pods/observe.h"
#include "operator/kube/pods/tfjob_pods.h"

namespace muster::kube {

namespace {

ObjectName name_of(const Pod& pod) {
  return {pod.meta.name_space, pod.meta.name};
}

}  // namespace

Json untracking_patch(const Pod& pod) {
  const auto place = std::ranges::find(pod.meta.finalizers, kTrackingFinalizer);
  const std::string path =
      "/metadata/finalizers/" + std::to_string(place - pod.meta.finalizers.begin());
  return Json::array({{{"op", "test"}, {"path", path}, {"value", kTrackingFinalizer}},
                      {{"op", "remove"}, {"path", path}}});
}

void PodWriter::take_over(const std::string& text) {
  store_.refresh(decode_object<Pod>(text));
}

std::optional<std::string> PodWriter::create(const Json& pod) {
  if (try_create(pod)) return std::nullopt;
  const std::string key = name_of(pod).key();
  const auto there = client_.get(pods(), name_of(pod));
  if (!there) throw Unavailable("pod " + key + " was there, and is not any more");
  if (is_left_by_predecessor(*there, pod))
    throw NameIsHeld("pod " + key + " of the deleted job of this name has yet to go");
  if (owner_uid_of(*there) != owner_uid_of(pod)) return describe_owner(*there);
  const Pod other = decode_object<Pod>(there->dump());
  const auto replica = observe(other), wanted = observe(decode_object<Pod>(pod.dump()));
  if (!replica || !wanted || replica->attempt > wanted->attempt)
    throw Unavailable("pod " + key + " is of a later attempt, which has the same name");
  if (replica->attempt == wanted->attempt) {
    own_writes_.creating(key);
    own_writes_.created(other, now_());
    return std::nullopt;
  }
  make_room(other);
  if (!try_create(pod))
    throw NameIsHeld("pod " + key + " of an earlier attempt is asked to leave, and has yet to go");
  return std::nullopt;
}

// Returns false if the name is taken.
bool PodWriter::try_create(const Json& pod) {
  const std::string key = name_of(pod).key();
  own_writes_.creating(key);
  try {
    own_writes_.created(decode_object<Pod>(client_.create(pods(), pod).text), now_());
    return true;
  } catch (const ApiUnavailable& error) {
    own_writes_.not_created(key);
    if (!error.status().already_exists()) throw;
    return false;
  } catch (...) {
    own_writes_.not_created(key);
    throw;
  }
}

void PodWriter::make_room(const Pod& there) {
  const auto replica = observe(there);
  if (replica && is_live(*replica))
    throw NameIsHeld("pod " + there.meta.key() +
                     " of an earlier attempt has not ended (its node may be lost); its successor "
                     "has the same name, and is created when that pod has gone");
  untrack(there);
  ask_to_leave(there, /*version=*/"");
}

// Calls `call`. If the pod has gone, even if another pod has its name now, the write counts as
// done. If the pod has only changed, stores its present state for the next look, and throws.
void PodWriter::write(const Pod& pod, const std::function<void()>& call) {
  try {
    return call();
  } catch (const ApiUnavailable& error) {
    if (error.status().not_found()) return;
    if (!error.status().conflict()) throw;
    const auto there = client_.get(pods(), name_of(pod));
    if (!there || uid_of(*there) != pod.meta.uid) return;
    take_over(there->dump());
    throw;
  }
}

void PodWriter::remove(const Pod& pod) {
  ask_to_leave(pod, pod.meta.resource_version);
}

void PodWriter::ask_to_leave(const Pod& pod, const std::string& version) {
  Client::RemoveOptions options;
  options.preconditions = {pod.meta.uid, version};
  own_writes_.removed(pod.meta.uid, now_());
  try {
    write(pod, [&] { client_.remove(pods(), name_of(pod), options); });
  } catch (...) {
    own_writes_.not_removed(pod.meta.uid);
    throw;
  }
}

void PodWriter::untrack(const Pod& pod) {
  if (!is_tracked(pod)) return;
  try {
    write(pod, [&] {
      const Answer written = client_.patch(pods(), name_of(pod), PatchKind::json,
                                           untracking_patch(pod), {pod.meta.uid, ""});
      take_over(written.text);
    });
  } catch (const ApiInvalid& error) {
    // Somebody has changed the pod's finalizers: the view will show the change.
    throw Unavailable(error.what());
  }
}

void PodWriter::merge(const Pod& pod, const Json& metadata) {
  write(pod, [&] {
    const Answer written = client_.patch(pods(), name_of(pod), PatchKind::merge,
                                         {{"metadata", metadata}}, {pod.meta.uid, ""});
    take_over(written.text);
  });
}

void PodWriter::retire(const Pod& pod) {
  merge(pod, {{"labels", {{kCurrentLabel, nullptr}}}});
}

void PodWriter::ask_for_checkpoint(const Pod& pod, const std::string& request) {
  try {
    merge(pod, {{"annotations", {{api::kCheckpointAnnotation, request}}}});
  } catch (const ApiInvalid& error) {
    throw Unavailable(error.what());  // the job continues without the checkpoint
  }
}

}  // namespace muster::kube
