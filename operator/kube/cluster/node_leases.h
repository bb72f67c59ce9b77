#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "common/threads/mutex.h"
#include "operator/kube/api/client.h"
#include "operator/kube/api/lease.h"

namespace muster::kube {

// Tells whether the kubelets of nodes renew their Leases (namespace kube-node-lease), which a
// kubelet does every ten seconds. The decision uses only this machine's clock and the times at
// which this process saw a Lease change, because the time written in a Lease comes from another
// machine's clock. Ask only about nodes that there is a reason to doubt. Thread-safe.
class NodeLeases {
 public:
  static constexpr std::chrono::seconds kSilence{15};
  static constexpr std::chrono::seconds kEvery{5};  // time between questions about one node
  using Clock = std::function<BootTime()>;

  NodeLeases(const Client& client, Clock clock) : client_(client), clock_(std::move(clock)) {}

  // Whether the Lease was not renewed for kSilence, while the API server answered us. A failed
  // request, or too long a time without a request, restarts the observation. Returns false if there
  // is no Lease or we may not read it. `again` is set to the delay after which to ask about the
  // node again.
  bool is_silent(const std::string& node, std::chrono::milliseconds& again);

 private:
  struct Seen {
    std::optional<std::string> renewed;  // renewTime as written; none: no answer
    BootTime since{};  // when this value was first seen, or of the last failed request
    BootTime asked{};
  };
  std::optional<std::string> ask(const std::string& node) const;
  static BootTime due(const Seen& seen);

  const Client& client_;
  const Clock clock_;
  Mutex mutex_;
  std::map<std::string, Seen> nodes_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::kube
