#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "common/threads/mutex.h"
#include "operator/kube/api/client.h"
#include "operator/kube/api/objects.h"

namespace muster::kube {

// Finds out why pods stay pending if only their events say it, for example that a volume cannot be
// mounted or a sandbox cannot be created. It asks the API server for the events of one pod: only
// after the pod has been pending for a while, seldom for the same pod, and at a limited rate for
// all pods. Thread-safe.
class PodTroubles {
 public:
  struct Settings {
    std::chrono::milliseconds patience{
        3'000};  // time pending before the first question about a pod
    // The time between two questions about one pod; it doubles up to longest_pause.
    std::chrono::milliseconds first_pause{10'000};
    std::chrono::milliseconds longest_pause{60'000};
    std::chrono::milliseconds between{200};  // time between questions about any two pods
  };
  struct Trouble {
    std::string reason;  // for example "FailedMount"; "": not known
    std::string words;   // the message of the event
    bool operator==(const Trouble&) const = default;
  };

  explicit PodTroubles(const Client& client) : PodTroubles(client, Settings{}) {}
  PodTroubles(const Client& client, Settings settings) : client_(client), settings_(settings) {}

  // Returns why the pod is pending, as far as it is known, for a pod whose status does not say it.
  // Sets `again` to the time of the next look. A request that fails changes nothing.
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
  Time next_ MUSTER_GUARDED_BY(mutex_){};    // earliest time of the next question about any pod
  Time turns_ MUSTER_GUARDED_BY(mutex_){};   // the first turn that no pod waits for
  Time looked_ MUSTER_GUARDED_BY(mutex_){};  // last search for entries to forget
};

// Returns the trouble in the newest of a pod's events; none if that event is of type Normal.
PodTroubles::Trouble newest_trouble(const std::vector<Json>& events);

// Returns the name of the quota that made the API server refuse a creation, and its words:
// "compute: requested: pods=1, used: ..."; nothing if the refusal has another reason.
std::optional<std::string> quota_in(const std::string& refusal);

// Returns a refusal without the name of the refused object, so that all pods of a job have the same
// words for the same cause.
std::string without_object_name(const std::string& refusal);

}  // namespace muster::kube
