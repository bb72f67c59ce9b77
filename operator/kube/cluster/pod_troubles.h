#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "common/threads/mutex.h"
#include "operator/kube/api/client.h"
#include "operator/kube/api/objects.h"

namespace muster::kube {

// Finds out why pods stay pending, where only their events say it: a volume that cannot be mounted,
// a sandbox that cannot be made. The API server is asked for the events of one pod, not before the
// pod has been pending for a while, seldom for the same pod, and at a limited rate for all of them.
// Thread-safe.
class PodTroubles {
 public:
  struct Settings {
    std::chrono::milliseconds patience{3'000};        // with a pod that is seen pending first
    std::chrono::milliseconds first_pause{10'000};    // between two questions about one pod; it
    std::chrono::milliseconds longest_pause{60'000};  // doubles up to this
    std::chrono::milliseconds between{200};           // between questions about any two pods
  };
  struct Trouble {
    std::string reason;  // "FailedMount"; "": none is known
    std::string words;   // of the kubelet, or of whoever has written the event
    bool operator==(const Trouble&) const = default;
  };

  explicit PodTroubles(const Client& client) : PodTroubles(client, Settings{}) {}
  PodTroubles(const Client& client, Settings settings) : client_(client), settings_(settings) {}

  // Returns, as far as it is known, why a pod is pending if its status does not say so. `again` is
  // set to when to look at it again. A request that fails changes nothing.
  Trouble look(const Pod& pod, Time now, Time& again);

 private:
  struct Known {
    Time due{};
    std::chrono::milliseconds pause{};
    Trouble trouble;
  };
  std::optional<Trouble> ask(const Pod& pod) const;
  void forget_old(Time now) MUSTER_REQUIRES(mutex_);

  const Client& client_;
  const Settings settings_;
  Mutex mutex_;
  std::map<std::string, Known> pods_ MUSTER_GUARDED_BY(mutex_);  // by UID
  Time next_ MUSTER_GUARDED_BY(mutex_){};                        // question about any pod
  Time turns_ MUSTER_GUARDED_BY(mutex_){};   // the first turn that nobody waits for
  Time looked_ MUSTER_GUARDED_BY(mutex_){};  // when for those to forget
};

// Returns the trouble in the newest of a pod's events; none if that event is of type Normal.
PodTroubles::Trouble newest_trouble(const std::vector<Json>& events);

// Returns the name of the quota that made the API server refuse a creation, and its words:
// "compute: requested: pods=1, used: ..."; nothing if the refusal has another reason.
std::optional<std::string> quota_in(const std::string& refusal);

// Returns a refusal without the name of the refused object, so that the same cause gives the same
// words for each of a job's pods.
std::string without_object_name(const std::string& refusal);

}  // namespace muster::kube
