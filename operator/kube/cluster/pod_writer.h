#pragma once

#include <functional>

#include "operator/kube/api/client.h"
#include "operator/kube/cache/store.h"
#include "operator/kube/cluster/own_writes.h"

namespace muster::kube {

// Makes every write of pods. Each is harmless when late or repeated, addresses exactly the pod that
// was looked at, and is known (in the store or as an own write) before it shows in the view. All
// throw Unavailable if they do not succeed now.
class PodWriter {
 public:
  using Now = std::function<Time()>;
  PodWriter(const Client& client, Store<Pod>& store, OwnWrites& own_writes, Now now)
      : client_(client), store_(store), own_writes_(own_writes), now_(std::move(now)) {}

  // Returns nothing if the pod is there now, created by us or by a process that was faster with the
  // same pod; else describes the owner of the object with its name. Also throws ApiInvalid. If an
  // earlier attempt had the same name, its pod is removed once it has ended; until then this throws
  // NameIsHeld (tfjob_pods.h).
  std::optional<std::string> create(const Json& pod);
  // The next four functions succeed if the pod has gone, also if another pod has its name now.
  // remove() asks a pod to leave, or deletes one that has ended. It fails if the pod has changed
  // since it was looked at.
  void remove(const Pod& pod);
  // Takes the tracking finalizer off the pod, if it is there.
  void untrack(const Pod& pod);
  // Removes the pod of an earlier attempt, the next of which is to have its name. Its end must have
  // been counted: nobody waits for it any more. Throws NameIsHeld if it has not ended.
  void make_room(const Pod& there);
  // Takes the pod out of the Service, so that its successor is the only one of its name.
  void retire(const Pod& pod);
  // Gives the pod of a job's leader this request for a checkpoint, as an annotation.
  void ask_for_checkpoint(const Pod& pod, const std::string& request);

 private:
  bool try_create(const Json& pod);
  void ask_to_leave(const Pod& pod, const std::string& version);
  void write(const Pod& pod, const std::function<void()>& call);
  void merge(const Pod& pod, const Json& metadata);
  void take_over(const std::string& text);

  const Client& client_;
  Store<Pod>& store_;
  OwnWrites& own_writes_;
  const Now now_;
};

// Returns the JSON patch that takes the tracking finalizer off a pod that has it.
Json untracking_patch(const Pod& pod);

}  // namespace muster::kube
