#pragma once

#include <functional>

#include "operator/kube/api/client.h"
#include "operator/kube/cache/store.h"
#include "operator/kube/cluster/own_writes.h"

namespace muster::kube {

// Does all writes of pods. Each write is harmless when late or repeated, addresses exactly the pod
// that was looked at, and is known (in the store or as an own write) before the view shows it. All
// functions throw Unavailable if the write does not succeed now.
class PodWriter {
 public:
  using Now = std::function<Time()>;
  PodWriter(const Client& client, Store<Pod>& store, OwnWrites& own_writes, Now now)
      : client_(client), store_(store), own_writes_(own_writes), now_(std::move(now)) {}

  // Returns nothing if the pod exists now, created by this process or by another process that was
  // faster; else describes the owner of the object that has its name. Also throws ApiInvalid. If an
  // earlier attempt had the same name, its pod is removed once it has ended; until then this throws
  // NameIsHeld (tfjob_pods.h).
  std::optional<std::string> create(const Json& pod);
  // The next four functions succeed if the pod has gone, even if another pod has its name now.
  // remove() asks a pod to leave, or deletes an ended pod. remove() fails if the pod has changed
  // since it was looked at.
  void remove(const Pod& pod);
  // Removes the pod's tracking finalizer, if it is there.
  void untrack(const Pod& pod);
  // Removes the pod of an earlier attempt, so that the next attempt can have the same name. The end
  // of the earlier attempt must have been counted already. Throws NameIsHeld if the pod has not
  // ended.
  void make_room(const Pod& there);
  // Takes the pod out of the Service, so that only its successor has the host name.
  void retire(const Pod& pod);
  // Writes a request for a checkpoint to the pod of the job's leader, as an annotation.
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

// Returns the JSON patch that removes the tracking finalizer from a pod that has it.
Json untracking_patch(const Pod& pod);

}  // namespace muster::kube
