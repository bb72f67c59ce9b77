#pragma once

#include <functional>

#include "operator/kube/api/client.h"
#include "operator/kube/cache/store.h"
#include "operator/kube/cluster/own_writes.h"

namespace muster::kube {

// Every write of pods. Each is harmless when late or repeated, asks for the very pod that was
// looked at, and is known (in the store or as an own write) before it shows in the view. All throw
// Unavailable where they do not succeed now.
class PodWriter {
 public:
  using Now = std::function<Time()>;
  PodWriter(const Client& client, Store<Pod>& store, OwnWrites& own_writes, Now now)
      : client_(client), store_(store), own_writes_(own_writes), now_(std::move(now)) {}

  // Nothing if the pod is there now, by us or by somebody who was ahead of us with the same; else
  // whose it is. Throws ApiInvalid too.
  std::optional<std::string> create(const Json& pod);
  // Of the next three, one that has gone needs nothing any more, nor if its name is another's now.
  // Asks it to leave, or deletes one that has ended. Not if it has changed since it was looked at.
  void remove(const Pod& pod);
  // Takes the tracking finalizer off, if it is there.
  void untrack(const Pod& pod);
  // Takes it out of the Service, so that its successor is the only one of its name.
  void retire(const Pod& pod);

 private:
  std::optional<std::string> look_who_is_there(const Json& pod);
  void write(const Pod& pod, const std::function<void()>& call);
  void take_over(const std::string& text);

  const Client& client_;
  Store<Pod>& store_;
  OwnWrites& own_writes_;
  const Now now_;
};

// JSON patch that takes the tracking finalizer off a pod that has it.
Json untracking_patch(const Pod& pod);

}  // namespace muster::kube
